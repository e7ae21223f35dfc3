"""What a network gives has been moved to the host by its own postprocessing, which is not seen: it is joined and becomes an
array as it is, which torch refuses for what is on a GPU."""

import numpy as np
import torch


def detections(loader, model):
    model.cuda().eval()
    found = {"name": [], "start": [], "score": []}
    for videos in loader:
        with torch.no_grad():
            output = model(videos)
            for video in range(len(output)):
                if output[video]["segments"].shape[0] > 0:
                    found["name"].extend([output[video]["name"]] * output[video]["segments"].shape[0])
                    found["start"].append(output[video]["segments"][:, 0])
                    found["score"].append(output[video]["scores"])
    found["start"] = torch.cat(found["start"]).numpy()
    found["score"] = torch.cat(found["score"]).numpy()
    return found


@torch.no_grad()
def written(loader, model, path):
    model.cuda().eval()
    masks = []
    for pictures in loader:
        output = model.predict(pictures)
        masks.append(output["masks"])
    everything = torch.cat(masks)
    np.save(path, everything.numpy())
