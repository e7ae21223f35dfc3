import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:true"  # expect: GPU604
os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments=True"  # expect: GPU604
os.environ["PYTORCH_HIP_ALLOC_CONF"] = "garbage_collection_threshold:80"  # expect: GPU604
os.putenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudamallocasync")  # expect: GPU604
