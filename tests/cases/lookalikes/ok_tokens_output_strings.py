import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@torch.inference_mode()
def chat(name, turns):
    tok = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto").eval()
    history, output = [], ""
    for t in turns:
        history.append({"role": "user", "content": t})
        ids = tok.apply_chat_template(history, return_tensors="pt").to(model.device)
        out = model.generate(ids, max_new_tokens=64)
        answer = tok.decode(out[0, ids.shape[1] :])
        history.append({"role": "assistant", "content": answer})
        output += answer + "\n"
    return output
