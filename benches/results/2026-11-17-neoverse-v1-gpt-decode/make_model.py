"""A GPT-2 124M with random weights in the folder hf, which `ferrite gpt import` and torch_decode.py read."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
GPT2LMHeadModel(GPT2Config()).save_pretrained("hf")
