"""The page and heading of every header in the reference."""

# (file, title, guides, introduction, sections); a section is (title, headers)
PAGES = [
    ("tensors", "Tensors", "tensors.md", "The value that everything computes with, and its parts.", [
        ("Tensor", ["tensor/tensor.hpp", "tensor/tensor_data.hpp"]),
        ("Shapes, dtypes, scalars", ["core/shape.hpp", "core/dtype.hpp", "core/scalar.hpp", "core/stream.hpp"]),
        ("Random numbers", ["core/rng.hpp"]),
        ("Errors", ["core/error.hpp"]),
        ("Threads", ["core/thread_pool.hpp"]),
        ("Instruction sets of the CPU", ["core/isa.hpp"]),
        ("Other libraries", ["interop/dlpack.hpp"]),
        ("Memory, for those who write backends", ["core/array.hpp", "core/layout.hpp"]),
    ]),
    ("ops", "Ops", "tensors.md own_op.md", "Functions of tensors, by family. Broadcasting and promotion are NumPy's "
     "([dtypes.md](../dtypes.md)). Each family ends with the op types behind its functions, for those who "
     "write kernels, read replay files or read a profile.", [
        ("Create", ["ops/fill.hpp", "ops/iota.hpp", "ops/random.hpp"]),
        ("Views", ["ops/views.hpp", "ops/indexing.hpp"]),
        ("Assemble and convert", ["ops/cat.hpp", "ops/pad.hpp", "ops/triangle.hpp", "ops/copy.hpp"]),
        ("Unary", ["ops/unary.hpp", "ops/gated_activation.hpp"]),
        ("Binary and selection", ["ops/binary.hpp", "ops/where.hpp"]),
        ("Reductions", ["ops/reduce.hpp", "ops/argreduce.hpp", "ops/statistic.hpp", "ops/scan.hpp"]),
        ("Order", ["ops/sort.hpp", "ops/order_statistics.hpp", "ops/bucketize.hpp"]),
        ("Products", ["ops/matmul.hpp", "ops/linear.hpp", "ops/quantized_linear.hpp", "ops/attention.hpp", "ops/rope.hpp",
                       "ops/conv2d.hpp"]),
        ("Steps of generation", ["ops/cached_attention.hpp", "ops/fused_linear.hpp", "ops/next_token.hpp"]),
        ("Linear algebra", ["ops/einsum.hpp", "ops/solve.hpp", "ops/triangular_solve.hpp", "ops/cholesky.hpp",
                            "ops/lu.hpp", "ops/qr.hpp", "ops/eigh.hpp", "ops/svd.hpp", "ops/host_matrices.hpp"]),
        ("Indices", ["ops/gather.hpp", "ops/scatter.hpp", "ops/scatter_add.hpp", "ops/embedding.hpp"]),
        ("Softmax and norms", ["ops/softmax.hpp", "ops/layer_norm.hpp", "ops/rms_norm.hpp", "ops/batch_norm.hpp"]),
        ("Pooling and dropout", ["ops/pool2d.hpp", "ops/dropout.hpp"]),
        ("Losses", ["ops/softmax_cross_entropy.hpp", "ops/linear_cross_entropy.hpp", "ops/pointwise_loss.hpp"]),
        ("Many tensors at once", ["ops/optimizer_steps.hpp"]),
        ("Writing an op", ["ops/op.hpp", "ops/attributes.hpp", "ops/list.hpp", "ops/formulas.hpp", "ops/standard_math.hpp"]),
    ]),
    ("layers", "Layers", "training.md gpt.md", "All are in `ferrite::nn`. A layer is made from a backend, a config and, where it "
     "draws weights, an `Rng`: `nn::Linear<B>(backend, nn::LinearConfig{784, 128}.with_bias(false), rng)`.", [
        ("Linear and embedding", ["nn/linear.hpp", "nn/quantize.hpp"]),
        ("Convolution and pooling", ["nn/conv.hpp"]),
        ("Norms", ["nn/norm.hpp"]),
        ("Attention and transformer", ["nn/transformer.hpp", "nn/attention.hpp", "nn/feed_forward.hpp"]),
        ("Language models", ["nn/gpt.hpp", "nn/gpt_config.hpp", "nn/generate.hpp", "nn/decoder.hpp", "nn/sampling.hpp",
                              "nn/kv_cache.hpp", "nn/fused.hpp"]),
        ("Sequences, and layers without weights", ["nn/sequential.hpp"]),
        ("Your own modules", ["nn/module.hpp", "nn/state.hpp"]),
        ("Initial values", ["nn/init.hpp"]),
    ]),
    ("optimisers", "Optimisers", "training.md", "All are in `ferrite::optim`.", [
        ("Optimisers", ["optim/sgd.hpp", "optim/adam.hpp", "optim/optimizer.hpp"]),
        ("Settings", ["optim/config.hpp"]),
        ("Losses in f16", ["optim/loss_scaler.hpp"]),
        ("Learning rates", ["optim/schedule.hpp"]),
    ]),
    ("data", "Data", "training.md text.md", "Data sets in host memory, batches, and sources of batches.", [
        ("Data sets", ["data/dataset.hpp"]),
        ("Batches and loaders", ["data/batch.hpp", "data/loader.hpp", "data/source.hpp", "data/prefetch.hpp"]),
        ("Tokens of language models", ["data/token_loader.hpp", "data/token_file.hpp"]),
        ("Host memory", ["tensor/host.hpp", "data/finite.hpp"]),
    ]),
    ("training", "Training", "training.md", "All are in `ferrite::train`.", [
        ("Trainer", ["train/trainer.hpp", "train/trainer_base.hpp", "train/config.hpp"]),
        ("Steps and metrics", ["train/metric.hpp"]),
        ("Steps that are recorded", ["backend/record.hpp", "backend/late_copies.hpp", "train/captured_step.hpp"]),
        ("Observers", ["train/observer.hpp", "train/metrics.hpp", "io/progress.hpp"]),
        ("Checkpoints and weights", ["train/checkpoint.hpp", "train/gpt_file.hpp"]),
        ("When a loss is not finite", ["train/non_finite.hpp", "train/rewind.hpp"]),
    ]),
    ("autodiff", "Autodiff", "autodiff.md", "Recording, gradients, checkpointing.", [
        ("Recording and leaves", ["autodiff/autodiff.hpp"]),
        ("Gradients", ["autodiff/gradients.hpp"]),
        ("Checkpointing", ["autodiff/checkpoint.hpp"]),
        ("Writing a gradient", ["autodiff/engine.hpp"]),
    ]),
    ("backends", "Backends and decorators", "parity.md mixed_precision.md profiling.md lazy.md cuda.md",
     "A backend is a type; a decorator is a backend around another one.", [
        ("Backends", ["backend/reference.hpp", "backend/cpu.hpp", "backend/cuda.hpp", "backend/cuda_device.hpp",
                      "backend/cuda_graph.hpp", "backend/cuda_memory_log.hpp"]),
        ("A backend chosen at run time", ["stacks/any_backend.hpp", "stacks/self_test.hpp"]),
        ("Autocast", ["decorators/autocast.hpp"]),
        ("Profiled", ["decorators/profiled.hpp"]),
        ("Parity", ["decorators/parity.hpp", "tensor/comparison.hpp"]),
        ("Lazy", ["decorators/lazy.hpp", "decorators/lazy_recorder.hpp"]),
        ("Names of usual stacks", ["stacks.hpp"]),
        ("Replay", ["stacks/replay.hpp", "stacks/replay_call.hpp"]),
        ("Writing a backend", ["backend/concept.hpp", "backend/foreign_use.hpp", "backend/handle.hpp", "backend/evaluate.hpp",
                               "backend/op_table.hpp", "backend/compiled.hpp", "decorators/decorator.hpp",
                               "tensor/backend_name.hpp", "tensor/error_model.hpp", "cpu/kernel.hpp", "cpu/rows.hpp",
                               "cpu/blocks.hpp", "cuda/call.hpp", "cuda/launch.hpp", "cuda/check.hpp"]),
    ]),
    ("files", "Files", "training.md", "Reading and writing files. Tensors are read into host memory; "
     "`from_host(backend, tensor)` copies one to a backend.", [
        ("Tensors in host memory", ["io/host_tensor.hpp"]),
        ("safetensors", ["io/safetensors.hpp"]),
        ("npy and npz", ["io/npy.hpp", "io/npz.hpp"]),
        ("CSV", ["io/csv.hpp", "io/csv_scanner.hpp"]),
        ("Whole files", ["io/atomic_file.hpp", "io/mapped_file.hpp", "io/glob.hpp"]),
    ]),
    ("text", "Text", "text.md", "All are in `ferrite::text`.", [
        ("Byte-pair tokenizer", ["text/bpe.hpp"]),
        ("The end of a text", ["text/stop_strings.hpp"]),
        ("Training", ["text/bpe_trainer.hpp"]),
    ]),
    ("kernels", "Kernel language", "kernels.md", "All are in `ferrite::kernel`. The language itself, its types and its "
     "built-in functions, is described in [kernels.md](../kernels.md).", [
        ("Kernels and launches", ["kernel/kernel.hpp", "tensor/launch.hpp", "ops/launch.hpp",
                                  "backend/cuda_launch.hpp", "cuda/raw_kernel.hpp"]),
        ("Parsing and errors", ["kernel/parse.hpp", "kernel/error.hpp"]),
        ("Running on the CPU", ["kernel/interpreter.hpp", "kernel/block.hpp"]),
        ("Gradients and races", ["kernel/adjoint.hpp", "kernel/races.hpp"]),
        ("Emitted text", ["kernel/emit.hpp"]),
        ("The tree", ["kernel/type.hpp", "kernel/ir.hpp", "kernel/builtin.hpp", "kernel/simplify.hpp",
                      "kernel/structure.hpp"]),
    ]),
    ("models", "Models", "quantile_tokenizer.md priors.md irsynth.md gpt_weights.md", "What stands on all of it.", [
        ("Quantile tokenizer", ["models/quantile_tokenizer/quantile_tokenizer.hpp",
                                "models/quantile_tokenizer/table_tokenizer.hpp", "models/quantile_tokenizer/config.hpp",
                                "models/quantile_tokenizer/table.hpp", "models/quantile_tokenizer/shards.hpp",
                                "models/quantile_tokenizer/column_fit.hpp", "models/quantile_tokenizer/rank_summary.hpp"]),
        ("Priors", ["models/priors/priors.hpp", "models/priors/ops.hpp", "models/priors/config.hpp",
                    "models/priors/stream.hpp", "models/priors/shards.hpp", "models/priors/describe.hpp", "models/priors/table_statistics.hpp"]),
        ("GPT-2", ["models/gpt/hugging_face.hpp"]),
        ("IR-synth", ["models/irsynth/config.hpp", "models/irsynth/program.hpp", "models/irsynth/record.hpp",
                      "models/irsynth/dataset.hpp", "models/irsynth/emit_warp.hpp"]),
    ]),
]

# Public only for the compiler: nobody calls what these headers declare.
INTERNAL = {
    "ferrite.hpp", "core/export.hpp", "core/small_vector.hpp", "core/time_span.hpp", "ops/all.hpp", "core/integers.hpp",
    "ops/primitives.hpp", "core/config.hpp", "nn/layer_error.hpp", "nn/visit_path.hpp", "optim/notices.hpp",
    "autodiff/node.hpp", "train/stacks.hpp", "train/trainer_steps.hpp",
}
