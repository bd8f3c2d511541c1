// The gradient of embedding: the rows of dy, added up by id.
#include "backend_cuda/kit/indexed_sums.hpp"
#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

void run(Cuda& cuda, const op::EmbeddingBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array& ids = in[1];
  const bool sums_as_is =
      in[0].dtype() == out[0].dtype() || (size_of(in[0].dtype()) == 2 && out[0].dtype() == DType::f32);
  const Array dy = sums_as_is ? in[0] : dense(cuda, in[0], out[0].dtype());
  const bool add = accumulates(mask, 0);
  const Call call(cuda, op.type_name);
  if (!add && out[0].shape().numel() > 0) run(cuda, op::Fill{out[0].shape(), out[0].dtype(), 0}, in, out);
  Shape along = ids.layout().strides, across = Shape::filled(along.rank(), 0);
  along.push_back(0);
  across.push_back(out[0].layout().strides[1]);
  add_indexed(call,
              {out[0].with_layout({dy.shape(), across, out[0].layout().offset}),
               ids.with_layout({dy.shape(), along, ids.layout().offset}), dy, op.rows,
               out[0].layout().strides[0], (1u << ids.shape().rank()) - 1},
              add);
  call.finish();
}

}  // namespace ferrite
