# SPDX-License-Identifier: Apache-2.0
"""Names of collectives and element types: PyTorch's and NCCL's to those of workload files."""

# PyTorch's name -> (operation, what the count of the NCCL call is). The names are those that c10d passes to
# record_param_comms, and those of the c10d:: operators without their last _.
INPUT, OUTPUT, INPUT_PER_RANK, ONE = "input", "output", "input per rank", "one"
COLLECTIVES = {
    **dict.fromkeys(("allreduce", "all_reduce", "allreduce_coalesced", "all_reduce_coalesced"), ("all_reduce", INPUT)),
    **dict.fromkeys(("broadcast", "_broadcast_oop"), ("broadcast", INPUT)),
    **dict.fromkeys(("reduce", "_reduce_oop"), ("reduce", INPUT)),
    **dict.fromkeys(("allgather", "all_gather", "_allgather_base", "all_gather_single", "all_gather_into_tensor",
                     "allgather_coalesced", "allgather_into_tensor_coalesced", "all_gather_into_tensor_coalesced"),
                    ("all_gather", INPUT)),
    **dict.fromkeys(("reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single", "reduce_scatter_tensor",
                     "reduce_scatter_tensor_coalesced"), ("reduce_scatter", OUTPUT)),
    **dict.fromkeys(("alltoall", "all_to_all", "all_to_allv", "all_to_all_single", "alltoall_base"),
                    ("alltoall", INPUT_PER_RANK)),
    # NCCL has none: c10d reduces one element, and the host waits for it.
    "barrier": ("all_reduce", ONE),
}
# What record_param_comms also names, and which moves nothing.
NO_COLLECTIVES = ("wait", "init", "start_coalescing", "end_coalescing")

# toString(c10::ScalarType), and in execution traces also C++'s names. Bool travels as uint8.
TYPES = {
    "Float": "float32", "float": "float32", "Double": "float64", "double": "float64",
    "Half": "float16", "c10::Half": "float16", "BFloat16": "bfloat16", "c10::BFloat16": "bfloat16",
    "Byte": "uint8", "unsigned char": "uint8", "Bool": "uint8", "bool": "uint8",
    "Char": "int8", "signed char": "int8", "char": "int8",
    "Int": "int32", "int": "int32", "Long": "int64", "long int": "int64", "long": "int64",
    "UInt32": "uint32", "unsigned int": "uint32", "UInt64": "uint64", "unsigned long": "uint64",
    "Float8_e4m3fn": "f8e4m3", "c10::Float8_e4m3fn": "f8e4m3", "Float8_e5m2": "f8e5m2", "c10::Float8_e5m2": "f8e5m2",
}
BYTES_OF_TYPE = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "uint8": 1, "int8": 1, "int32": 4, "int64": 8,
                 "uint32": 4, "uint64": 8, "f8e4m3": 1, "f8e5m2": 1}


def type_of_bytes(size):
    """Where a trace has bytes only: the widest type of those that jobs use most which fits."""
    return "float32" if size % 4 == 0 else "uint8"
