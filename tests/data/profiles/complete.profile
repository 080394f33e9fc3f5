{"schema": 2,
 "id": "test-complete_1.0",
 "created": "2026-08-01",
 "source": "two hosts, # is no comment here",
 "nccl_min": 21901,
 "nccl_max": 23099,
 "match": {"cloud": "AWS", "instance_type": "p4d.*, p4de.24xlarge", "topology": "43d74c2872d9"},
 "net": {"flows": 8, "chunk_bytes": 131072, "speed_mbps": 100000},
 "notes": {"about": "Every section and key of a profile. For tests: no measurement."},
 "tables": [
  {"coll": "allreduce", "nodes": 2, "ppn": 8, "rows": [
   {"bytes_lo": 0, "bytes_hi": 65536, "algo": "tree", "proto": "ll"},
   {"bytes_lo": 65536, "bytes_hi": 1048576, "algo": "tree", "proto": "ll128", "channels": 2},
   {"bytes_lo": 4194304, "algo": "ring", "proto": "simple", "channels": 64}]},
  {"coll": "allgather", "nodes": 4, "ppn": 1, "rows": [
   {"bytes_lo": 1024, "bytes_hi": 2048, "algo": "pat", "proto": "simple", "channels": 1}]},
  {"coll": "reducescatter", "nodes": 4, "ppn": 1, "rows": []},
  {"coll": "broadcast", "nodes": 4, "ppn": 1, "rows": [
   {"bytes_lo": 0, "bytes_hi": 1, "algo": "collnetdirect", "proto": "simple"},
   {"bytes_lo": 1, "bytes_hi": 2, "algo": "collnetchain", "proto": "simple"}]},
  {"coll": "reduce", "nodes": 4, "ppn": 1, "rows": [
   {"bytes_lo": 0, "bytes_hi": 1, "algo": "nvls", "proto": "simple"},
   {"bytes_lo": 1, "bytes_hi": 2, "algo": "nvlstree", "proto": "simple"}]},
  {"coll": "allreduce", "nodes": 4, "ppn": 8, "rows": [
   {"bytes_lo": 65536, "bytes_hi": 1048576, "algo": "ring", "proto": "simple", "channels": 8, "over_algo": "tree", "over_proto": "simple", "default_ns": 812450, "choice_ns": 700000, "noise_permille": 21},
   {"bytes_lo": 1048576, "bytes_hi": 2097152, "algo": "tree", "proto": "ll128", "over_algo": "ring", "over_proto": "ll", "default_ns": 9001, "choice_ns": 8500}]}]}
