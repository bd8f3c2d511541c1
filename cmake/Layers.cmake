# The layers of the library, from the bottom up. A layer is the folders of its name in src/ and include/ferrite/ (FOLDERS where they have
# other names). It may include its own headers, those of the layers it USES, and what those use in turn. src/CMakeLists.txt makes one
# target of each, and tests/walls.cmake checks every include against this list.
ferrite_layer(core FOLDERS core math)
ferrite_layer(io USES core)
ferrite_layer(text USES io)                                        # text to tokens and back
ferrite_layer(kernel USES io)                                      # the kernel language: its compiler and its CPU executors
ferrite_layer(tensor FOLDERS backend ops tensor autodiff USES kernel)  # one language: ops run on backends and give tensors
ferrite_layer(decorators USES tensor)
ferrite_layer(backend_cpu FOLDERS backend_cpu cpu USES tensor)
ferrite_layer(backend_cuda FOLDERS backend_cuda cuda USES decorators)  # it has a stopwatch for Profiled
ferrite_layer(stacks USES decorators)                              # all backends by name, and the tables of their ops
ferrite_layer(interop USES tensor)
ferrite_layer(nn USES tensor)
ferrite_layer(data USES nn)
ferrite_layer(optim USES data)
ferrite_layer(train USES optim stacks)
ferrite_layer(dist USES train backend_cuda)                        # groups of ranks, their collectives, data-parallel training
ferrite_layer(priors FOLDERS models/priors USES data stacks interop backend_cpu backend_cuda)
ferrite_layer(quantile_tokenizer FOLDERS models/quantile_tokenizer USES data stacks)
ferrite_layer(irsynth FOLDERS models/irsynth USES stacks backend_cuda)
ferrite_layer(gpt FOLDERS models/gpt USES train)                   # weights of GPT-2, from transformers and back
ferrite_layer(pfn FOLDERS models/pfn USES train priors quantile_tokenizer)  # prior-fitted networks, and tables for them
