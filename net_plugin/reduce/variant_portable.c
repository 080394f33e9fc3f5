/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 16 bytes, which every x86-64 and AArch64 has; on others the compiler makes do. */
#define VARIANT reduce_portable
#define VECTOR_BYTES 16
#define TARGET

#include "net_plugin/reduce/formats.h"

#define f16_from_f32 f16_from_f32_by_integers
#define f32_from_f16 f32_from_f16_by_integers

#include "net_plugin/reduce/variant_body.h"
