/* SPDX-License-Identifier: Apache-2.0 */
/* old_glibc_start: starts a tool on glibc before 2.34 too, though the compiler's start code is of a
 * later release. There a program runs its constructors itself, which the later start code leaves to
 * the C library; without them __builtin_cpu_supports() knows no processor. Linked into tools alone,
 * with --wrap=__libc_start_main (Makefile).
 *
 * Owns: nothing.  Threads: there is one.  Blocks: never.  Fails: cannot. */

typedef int main_function(int, char **, char **);
typedef void constructor(int, char **, char **);

/* The linker's: the program's constructors. */
extern constructor *const __init_array_start[] __attribute__((visibility("hidden")));
extern constructor *const __init_array_end[] __attribute__((visibility("hidden")));

int __real___libc_start_main(main_function *main, int argc, char **argv, constructor *init,
                             void (*fini)(void), void (*loader_fini)(void), void *stack_end);
int __wrap___libc_start_main(main_function *main, int argc, char **argv, constructor *init,
                             void (*fini)(void), void (*loader_fini)(void), void *stack_end);

static void run_constructors(int argc, char **argv, char **environment) {
  for (constructor *const *each = __init_array_start; each < __init_array_end; each++) {
    (*each)(argc, argv, environment);
  }
}

/* Called by the start code. A program that names its constructors runs them itself, on every
 * release. */
int __wrap___libc_start_main(main_function *main, int argc, char **argv, constructor *init,
                             void (*fini)(void), void (*loader_fini)(void), void *stack_end) {
  return __real___libc_start_main(main, argc, argv, init ? init : run_constructors, fini,
                                  loader_fini, stack_end);
}
