# SPDX-License-Identifier: Apache-2.0
"""Debian's unmodified PyTorch on the emulated GPU. Python imports this file at its start, from PYTHONPATH, and a script needs no
word about it: as soon as it has imported torch,

- operators of CUDA tensors are the CPU's, on tensors that share the memory, since PyTorch's CUDA kernels cannot run: emulated device
  memory is the process's own. Each waits for the current stream first. What launches no kernel (views, allocation, copies between
  streams), the caching allocator, streams, events, autograd, DDP's reducer and ProcessGroupNCCL are PyTorch's;
- TCPStore does without libuv, which Debian's PyTorch is built without; torchrun's own stores ask for it whatever USE_LIBUV says."""
import ctypes
import importlib.machinery
import sys
import warnings

# Operators that launch no kernel, and what is not for the CPU.
KEPT = {"empty.memory_format", "empty_strided", "is_pinned", "is_set_to", "_local_scalar_dense", "_pin_memory", "record_stream", "resize_",
        "set_"}
KEPT_PREFIXES = ("_cslt", "_cudnn", "_cufft", "_fft", "_foobar", "_nested", "_sparse", "_thnn_fused", "cudnn_", "fake_quantize", "fbgemm",
                 "miopen", "quantize", "set_.", "sparse")
# A CPU multiplies 16-bit numbers slowly, and a GPU sums them in 32 bits.
PRODUCTS = {"_slow_conv2d_forward", "addmm", "bmm", "convolution_backward", "mm"}


def emulate(torch):
    # pylint: disable=protected-access,too-many-statements
    tree_map = torch.utils._pytree.tree_map

    def same_memory(tensor):
        """A CPU tensor."""
        if not tensor.numel():
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        elements = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
        memory = (ctypes.c_char * (elements * tensor.element_size())).from_address(tensor.data_ptr())
        return torch.frombuffer(memory, dtype=tensor.dtype).as_strided(tensor.shape, tensor.stride())

    def to_cpu(value):
        if isinstance(value, torch.Tensor) and value.is_cuda:
            return same_memory(value)
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value

    def to_gpu(value):
        if not isinstance(value, torch.Tensor) or value.is_cuda:
            return value
        copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
        same_memory(copy).copy_(value)
        return copy

    def in_32_bits(operator):
        def product(*args, **kwargs):
            dtype = args[0].dtype
            if dtype not in (torch.float16, torch.bfloat16):
                return operator(*args, **kwargs)
            results = operator(*tree_map(lambda value: value.float() if isinstance(value, torch.Tensor) else value, args), **kwargs)
            return tree_map(lambda value: value.to(dtype) if isinstance(value, torch.Tensor) else value, results)
        return product

    def kernel_of(operator, compute):
        """In the place of CUDA's."""
        arguments, returns = operator._schema.arguments, operator._schema.returns
        written = [i for i, argument in enumerate(arguments) if argument.alias_info and argument.alias_info.is_write]

        def argument_of(result):
            """Its index, of a result that is an argument, written in place."""
            return next((i for i in written if result.alias_info and
                         result.alias_info.before_set == arguments[i].alias_info.before_set), None)
        sources = [argument_of(result) for result in returns]

        def kernel(*args, **kwargs):
            torch.cuda.current_stream().synchronize()
            cpu_args, cpu_kwargs = tree_map(to_cpu, (args, kwargs))
            results = compute(*cpu_args, **cpu_kwargs)

            def given(i, args, kwargs):
                return args[i] if i < len(args) else kwargs.get(arguments[i].name)
            for i in written:
                gpu, cpu = given(i, args, kwargs), given(i, cpu_args, cpu_kwargs)
                if isinstance(gpu, torch.Tensor) and gpu.shape != cpu.shape:  # the operator has sized its result
                    gpu.resize_(cpu.shape)
                    same_memory(gpu).copy_(cpu)
            if not returns:
                return None
            outcome = tuple(tree_map(to_gpu, result) if i is None else given(i, args, kwargs)
                            for i, result in zip(sources, results if len(returns) > 1 else (results,)))
            return outcome if len(returns) > 1 else outcome[0]
        return kernel

    def operators():
        for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
            space, _, name = name.partition("::")
            base, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if space != "aten" or not operator or name in KEPT or name.startswith(KEPT_PREFIXES):
                continue
            is_view = any(result.alias_info and not result.alias_info.is_write for result in operator._schema.returns)
            if not is_view:
                yield name, operator

    def copy_(self, source, non_blocking=False):  # pylint: disable=unused-argument
        torch.cuda.current_stream().synchronize()
        to_cpu(self).copy_(to_cpu(source))
        return self

    torch.backends.cudnn.enabled = False
    emulate.library = torch.library.Library("aten", "IMPL")  # kept: what it registers goes with it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each replaces one
        for name, operator in list(operators()):
            emulate.library.impl(name, kernel_of(operator, in_32_bits(operator) if name in PRODUCTS else operator), "CUDA")
        emulate.library.impl("copy_", copy_, "CUDA")


def do_without_libuv(torch):
    class Store(torch.distributed.TCPStore):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **{**kwargs, "use_libuv": False})
    for name, module in list(sys.modules.items()):
        if name.startswith("torch.distributed") and hasattr(module, "TCPStore"):
            module.TCPStore = Store


class AfterTorch:
    """A finder of modules that lets others find, and adds to what torch does at its import."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                emulate(module)
                do_without_libuv(module)
            spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, AfterTorch)
