import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ.get("CONF", "")
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"{os.environ['EXTRA']},expandable_segments:True"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"garbage_collection_threshold:{0.5 + 0.3}"
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "roundup_power2_divisions:[256:1,512:2,>:4],"
