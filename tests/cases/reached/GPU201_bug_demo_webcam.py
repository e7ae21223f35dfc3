import cv2
import torch

net = torch.hub.load("intel-isl/MiDaS", "MiDaS_small").to("cuda").eval()
cap = cv2.VideoCapture(0)

while True:
    ok, frame = cap.read()
    if not ok:
        break
    img = torch.from_numpy(frame[:, :, ::-1].copy()).permute(2, 0, 1)[None].float().to("cuda") / 255
    depth = net(img)  # expect: GPU201
    d = depth.squeeze().detach().cpu().numpy()
    cv2.imshow("depth", d / d.max())
    if cv2.waitKey(1) == 27:
        break
