{"schema": 2,
 "id": "example",
 "source": "an example of the format, not measured",
 "nccl_min": 22105,
 "nccl_max": 23099,
 "net": {"flows": 8, "chunk_bytes": 131072},
 "notes": {"about": "An example of the format, to copy from. Nobody measured these rows: they show what can be said, and without \"match\" the profile is used only where STRATUS_PROFILE names it."},
 "tables": [
  {"coll": "allreduce", "nodes": 8, "ppn": 8, "rows": [
   {"bytes_lo": 8, "bytes_hi": 65536, "algo": "tree", "proto": "ll"},
   {"bytes_lo": 65536, "bytes_hi": 4194304, "algo": "tree", "proto": "simple"},
   {"bytes_lo": 4194304, "algo": "ring", "proto": "simple", "channels": 8}]},
  {"coll": "allgather", "nodes": 8, "ppn": 8, "rows": [
   {"bytes_lo": 1048576, "algo": "ring", "proto": "simple", "channels": 8}]}]}
