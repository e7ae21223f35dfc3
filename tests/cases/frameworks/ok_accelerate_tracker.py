import torch
from accelerate import Accelerator
from tqdm.auto import tqdm


def main(unet, vae, text_encoder, scheduler, loader, lr, steps):
    accelerator = Accelerator(gradient_accumulation_steps=4, log_with="tensorboard")
    opt = torch.optim.AdamW(unet.parameters(), lr=lr)
    unet, opt, loader = accelerator.prepare(unet, opt, loader)
    vae.requires_grad_(False).to(accelerator.device)
    text_encoder.requires_grad_(False).to(accelerator.device)
    bar = tqdm(total=steps)
    train_loss, step = 0.0, 0
    for batch in loader:
        with accelerator.accumulate(unet):
            latents = vae.encode(batch["pixels"]).latent_dist.sample() * 0.18215
            noise = torch.randn_like(latents)
            t = torch.randint(0, 1000, (len(latents),), device=latents.device)
            hidden = text_encoder(batch["ids"])[0]
            pred = unet(scheduler.add_noise(latents, noise, t), t, hidden).sample
            loss = torch.nn.functional.mse_loss(pred.float(), noise.float())
            train_loss += accelerator.gather(loss.repeat(4)).mean().item() / 4
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        if accelerator.sync_gradients:
            step += 1
            accelerator.log({"train_loss": train_loss}, step=step)
            accelerator.log({"last": loss}, step=step)
            bar.set_postfix(loss=loss.detach().item())
            train_loss = 0.0
