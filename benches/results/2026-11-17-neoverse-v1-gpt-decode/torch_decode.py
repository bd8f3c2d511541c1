"""Greedy text of the model in the folder hf by transformers, on 2 threads: the second of two runs counts."""

import sys
import time

import torch
from transformers import GPT2LMHeadModel

torch.set_num_threads(2)
tokens = int(sys.argv[1])
model = GPT2LMHeadModel.from_pretrained("hf").eval()
prompt = torch.tensor([[464, 2068, 7586, 21831]])  # The quick brown fox
with torch.no_grad():
    for n in (tokens, tokens):
        start = time.perf_counter()
        model.generate(
            prompt, max_new_tokens=n, min_new_tokens=n, do_sample=False, use_cache=True, pad_token_id=50256
        )
        seconds = time.perf_counter() - start
        print(f"{n} tokens, {seconds:.2f} s, {n / seconds:.1f} tokens/s", flush=True)
