import torch
from pathlib import Path


@torch.inference_mode()
def process_folder(segmenter, folder, read_frames, write):
    """Every file is a whole job of thousands of frames and a size of its own."""
    segmenter.eval().cuda()
    for path in sorted(Path(folder).glob("*.mp4")):
        masks = []
        for frames in read_frames(path).split(16):
            masks.append(segmenter(frames.cuda()).argmax(1).byte().cpu())
        write(path, torch.cat(masks))
        torch.cuda.empty_cache()  # maybe: GPU501
