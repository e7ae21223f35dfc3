"""Distillation of a small Qwen-like language model from a frozen larger one, bfloat16 weights, Adafactor; samples are generated in between."""

import argparse

import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from transformers import Adafactor, Qwen3Config, Qwen3ForCausalLM


def build(width: int, inner: int, layers: int, heads: int, words: int) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        head_dim=64,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
        dtype=torch.bfloat16,
    )
    with torch.device("cuda"):
        return Qwen3ForCausalLM(config).to(torch.bfloat16)


def distillation(student: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    return (
        F.kl_div(
            F.log_softmax(student / temperature, dim=-1),
            F.softmax(teacher / temperature, dim=-1),
            reduction="batchmean",
        )
        * temperature**2
    )


@torch.no_grad()
def sample(student: Qwen3ForCausalLM, count: int, words: int) -> torch.Tensor:
    student.eval()
    prompt = torch.randint(3, words, (count, 64), device=student.device)
    found = student.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=24,
        do_sample=True,
        top_k=50,
        use_cache=True,
    )
    student.train()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--words", type=int, default=64000)
    args = parser.parse_args()
    teacher = build(1536, 4096, 20, 24, args.words).eval().requires_grad_(False)
    student = build(640, 1792, 12, 10, args.words)
    student.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    student.train()
    optimizer = Adafactor(
        student.parameters(), lr=1e-4, scale_parameter=False, relative_step=False, warmup_init=False
    )
    schedule = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 8))
    for step in range(1, args.steps + 1):
        tokens = torch.randint(3, args.words, (args.batch, args.length)).to("cuda")
        with torch.no_grad():
            wanted = teacher(input_ids=tokens, use_cache=False).logits
        output = student(input_ids=tokens, labels=tokens, use_cache=False)
        matched = distillation(output.logits.view(-1, args.words), wanted.view(-1, args.words), 2.0)
        loss = 0.5 * output.loss + 0.5 * matched
        (loss / args.accumulate).backward()
        if step % args.accumulate == 0:
            torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        if step % 4 == 0:
            print(step, loss.item(), sample(student, args.batch, args.words).shape)


if __name__ == "__main__":
    main()
