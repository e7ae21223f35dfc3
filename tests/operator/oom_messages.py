"""What torch and others say when memory is out, since torch 1.0."""

# Torch 1.10 to 2.0: one sentence in parentheses. RuntimeError up to 1.12, torch.cuda.OutOfMemoryError from 1.13.
OLD_TAIL = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    "  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
TORCH_1_10 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 10.76 GiB total capacity;"
    " 8.90 GiB already allocated; 612.44 MiB free; 9.21 GiB reserved in total by PyTorch)" + OLD_TAIL
)
TORCH_1_13_LIMITED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 2; 39.59 GiB total capacity;"
    " 9.40 GiB already allocated; 28.91 GiB free; 9.80 GiB allowed; 9.52 GiB reserved in total by PyTorch)"
    + OLD_TAIL
)
TORCH_2_0_FRAGMENTED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB (GPU 1; 23.69 GiB total capacity;"
    " 15.02 GiB already allocated; 101.56 MiB free; 22.60 GiB reserved in total by PyTorch)" + OLD_TAIL
)
# 2.1 misspells capacity, names processes, and still recommends max_split_size_mb.
TORCH_2_1 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacty of"
    " 23.69 GiB of which 3.19 GiB is free. Process 2006998 has 256.00 MiB memory in use. Including non-PyTorch memory,"
    " this process has 20.23 GiB memory in use. Of the allocated memory 19.90 GiB is allocated by PyTorch, and"
    " 32.75 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
    " max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
NEW_TAIL = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.  See documentation for Memory Management "
    " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
TORCH_2_2_SHARED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
    " 79.15 GiB of which 1.31 GiB is free. Process 4411 has 61.02 GiB memory in use. Including non-PyTorch memory, this"
    " process has 16.80 GiB memory in use. Of the allocated memory 15.70 GiB is allocated by PyTorch, and 601.20 MiB is"
    " reserved by PyTorch but unallocated." + NEW_TAIL
)
# 2.4: in a container the process is listed under the host's number; private pools are named.
TORCH_2_4_CONTAINER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB"
    " of which 514.19 MiB is free. Process 562167 has 15.25 GiB memory in use. Of the allocated memory 13.73 GiB is"
    " allocated by PyTorch, with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), and 736.86 MiB is reserved by"
    " PyTorch but unallocated." + NEW_TAIL
)
TORCH_2_6_LIMITED = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of"
    " which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with"
    " 17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated."
    + NEW_TAIL
)
TORCH_2_9 = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.81 GiB. GPU 3 has a total capacity of 139.81 GiB of"
    " which 5.02 GiB is free. Including non-PyTorch memory, this process has 134.78 GiB memory in use. Of the allocated"
    " memory 133.60 GiB is allocated by PyTorch, and 410.33 MiB is reserved by PyTorch but unallocated. If reserved but"
    " unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See"
    " documentation for Memory Management"
    "  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf)"
)
ZERO_FREE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total capacity of 31.84 GiB of"
    " which 0 bytes is free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of the"
    " allocated memory 52.93 GiB is allocated by PyTorch, and 32.88 MiB is reserved by PyTorch but unallocated."
    + NEW_TAIL
)


# 1.0 to 1.3 say what is cached and in no tensor, others what is reserved; extensions and other devices say less.
TORCH_1_1 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 48.00 MiB (GPU 0; 7.93 GiB total capacity; 6.71 GiB already allocated;"
    " 19.00 MiB free; 143.20 MiB cached)"
)
OLD_SHARED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 310.00 MiB already"
    " allocated; 9.50 MiB free; 372.00 MiB reserved in total by PyTorch)"
)
ASYNC = """\
torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : 14.90 GiB
Requested               : 640.00 MiB
Device limit            : 15.99 GiB
Free (according to CUDA): 0 bytes
PyTorch limit (set by user-supplied memory fraction)
                        : 17179869184.00 GiB
"""
IPEX = (
    "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; 176.00 MiB already"
    " allocated; 176.00 MiB reserved in total by PyTorch)"
)
XPU = (
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB of which 1.20"
    " GiB is free. Of the allocated memory 4.10 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but"
    " unallocated. Please use `empty_cache` to release all unoccupied cached memory."
)
NPU = (
    "RuntimeError: NPU out of memory. Tried to allocate 1.50 GiB (NPU 3; 60.96 GiB total capacity; 57.10 GiB already allocated;"
    " 57.10 GiB current active; 612.00 MiB free; 58.40 GiB reserved in total by PyTorch) If reserved memory is >> allocated"
)
MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 15.05 GB, other allocations: 2.40 GB, max allowed: 18.13 GB). Tried"
    " to allocate 1.16 GB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory"
    " allocations (may cause system failure)."
)
MPS_1_12 = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 9.05 GB, max allowed: 9.07 GB). Tried to allocate 1.02 GB on"
    " shared pool."
)

# As a process prints it before the message
TRACE = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 88, in <module>
    main()
  File "/home/ann/train.py", line 61, in train_step
    out = model(batch)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
"""
