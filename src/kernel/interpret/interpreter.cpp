// Launching: arguments become numbers, the grid becomes blocks, blocks become threads.
#include <fmt/format.h>

#include "kernel/interpret/machine.hpp"
#include "kernel/transform/lower.hpp"

#include <algorithm>

namespace ferrite::kernel {

std::int64_t checked_threads(const Function& kernel, std::span<const std::int64_t> dim, int block_dim) {
  const int wanted = tid_dims(kernel);
  const auto given = static_cast<int>(dim.size());
  // In a kernel of blocks the threads along further axes share their indices, as in wp.launch_tiled.
  const bool more = wanted > 1 && wanted < given && !has_barrier(kernel.body);
  if (given < 1 || given > 4 || wanted > given || more)
    throw ShapeError(fmt::format("[{}] a grid of {} dimensions: the kernel takes {}", kernel.name, given,
                                 wanted > 1 ? std::to_string(wanted) : "1 to 4"));
  std::int64_t threads = 1;
  for (const std::int64_t n : dim) {
    if (n < 0)
      throw ShapeError(fmt::format("[{}] a grid with the extent {}: it cannot be negative", kernel.name, n));
    if (__builtin_mul_overflow(threads, n, &threads) || threads > std::numeric_limits<std::int32_t>::max())
      throw ShapeError(fmt::format("[{}] a grid of more than 2^31 - 1 threads", kernel.name));
  }
  if (block_dim < 1 || block_dim > 1024)
    throw ValueError(fmt::format("[{}] blocks of {} threads: 1 to 1024", kernel.name, block_dim));
  if (has_barrier(kernel.body) && threads % block_dim != 0)
    throw ValueError(fmt::format("[{}] {} threads in blocks of {}: a kernel with barriers needs whole blocks",
                                 kernel.name, threads, block_dim));
  return threads;
}

Interpreter::Interpreter(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
                         const InterpretOptions& options)
    : module_(module), kernel_(kernel), dim_(dim.begin(), dim.end()), options_(options) {
  checked_threads(kernel, dim, options.block_dim);
  if (options.races != nullptr) races_.emplace(*options.races, kernel.name, options.block_dim);
}

int Interpreter::size_of(Type type) const {
  if (type.is_array()) return 1;
  if (type.kind == Type::Kind::none) return 0;
  if (!type.is_struct()) return type.components();
  int size = 0;
  for (const Variable& f : module_.structs[type.structure].fields) size += size_of(f.type);
  return size;
}

int Interpreter::field_offset(std::uint16_t structure, int field) const {
  int offset = 0;
  for (int i = 0; i < field; ++i)
    offset += size_of(module_.structs[structure].fields[static_cast<std::size_t>(i)].type);
  return offset;
}

const Interpreter::Layout& Interpreter::layout_of(const Function& function) {
  const auto [found, is_new] = layouts_.try_emplace(&function);
  Layout& layout = found->second;
  if (is_new) {
    for (const Variable& v : function.variables) {
      layout.offsets.push_back(layout.size);
      layout.size += size_of(v.type);
    }
  }
  return layout;
}

void Interpreter::bind(const Value& value, Type type, const std::string& name, Number* out) {
  if (value.type != type)
    throw ValueError(fmt::format("[{}] argument '{}' is {}: the kernel takes {}", kernel_.name, name,
                                 to_string(value.type, module_.struct_names()),
                                 to_string(type, module_.struct_names())));
  if (type.is_struct() && !value.fields.empty()) {
    const Struct& s = module_.structs[type.structure];
    if (value.fields.size() != s.fields.size())
      throw ValueError(fmt::format("[{}] argument '{}' has {} fields: struct {} has {}", kernel_.name, name,
                                   value.fields.size(), s.name, s.fields.size()));
    for (std::size_t i = 0; i < s.fields.size(); ++i) {
      bind(value.fields[i], s.fields[i].type, name + "." + s.fields[i].name, out);
      out += size_of(s.fields[i].type);
    }
    return;
  }
  if (type.is_struct() && holds_array(module_, type))
    throw ValueError(
        fmt::format("[{}] argument '{}' is a struct that holds arrays: give its fields", kernel_.name, name));
  std::size_t wanted = static_cast<std::size_t>(size_of(type.element()));
  if (type.is_array()) {
    for (const std::int64_t n : value.shape) wanted *= static_cast<std::size_t>(n);
    if (value.shape.size() != type.dims)
      throw ShapeError(fmt::format("[{}] array '{}' has {} extents: its type has {} axes", kernel_.name, name,
                                   value.shape.size(), type.dims));
  }
  if (value.numbers.size() != wanted)
    throw ShapeError(fmt::format("[{}] argument '{}' has {} numbers: it needs {}", kernel_.name, name,
                                 value.numbers.size(), wanted));
  if (!type.is_array()) {
    std::copy(value.numbers.begin(), value.numbers.end(), out);
    return;
  }
  // The caller's array, which the kernel may change.
  out->integer =
      add_array({name, value.shape, size_of(type.element()), const_cast<Number*>(value.numbers.data()), {}});
  if (races_) races_->add_array(name, value.shape, size_of(type.element()), value.numbers.data(), false);
}

std::int64_t Interpreter::add_array(ArrayView array) {
  arrays_.push_back(std::move(array));
  return static_cast<std::int64_t>(arrays_.size());
}

Interpreter::ArrayView& Interpreter::array_of(Number handle) {
  if (handle.integer < 1 || handle.integer > static_cast<std::int64_t>(arrays_.size()))
    fail("this array was never set: the struct was made without one, assign its field first");
  return arrays_[static_cast<std::size_t>(handle.integer - 1)];
}

void Interpreter::run(std::span<Value> arguments) {
  if (static_cast<int>(arguments.size()) != kernel_.parameters)
    throw ValueError(fmt::format("[{}] {} arguments: the kernel takes {}", kernel_.name, arguments.size(),
                                 kernel_.parameters));
  std::vector<Number> parameters;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Variable& p = kernel_.variables[i];
    const std::size_t at = parameters.size();
    parameters.resize(at + static_cast<std::size_t>(size_of(p.type)));
    bind(arguments[i], p.type, p.name, parameters.data() + at);
  }
  std::int64_t threads = 1;
  for (const std::int64_t n : dim_) threads *= n;
  for (std::int64_t first = 0; first < threads; first += options_.block_dim)
    run_block(first, std::min<std::int64_t>(options_.block_dim, threads - first), parameters);
}

Interpreter::Frame Interpreter::frame_for_thread(const std::vector<Number>& parameters) {
  Frame frame;
  frame.function = &kernel_;
  frame.layout = &layout_of(kernel_);
  frame.numbers = arena_.take(static_cast<std::size_t>(frame.layout->size));
  std::copy(parameters.begin(), parameters.end(), frame.numbers);
  frame.written.assign(kernel_.variables.size(), false);
  for (int i = 0; i < kernel_.parameters; ++i) frame.written[static_cast<std::size_t>(i)] = true;
  return frame;
}

void Interpreter::run_block(std::int64_t first, std::int64_t count, const std::vector<Number>& parameters) {
  const std::size_t given = arrays_.size();
  shared_.clear();
  if (has_barrier(kernel_.body)) {
    const Arena::Scope scope(arena_);
    lanes_.assign(static_cast<std::size_t>(count), {});
    Lanes all;
    for (Lane& lane : lanes_) {
      lane.frame = frame_for_thread(parameters);
      lane.thread = first + (&lane - lanes_.data());
      all.push_back(&lane);
    }
    lockstep(kernel_.body, all);
  } else {
    for (thread_ = first; thread_ < first + count; ++thread_) {
      const Arena::Scope scope(arena_);
      frame_ = frame_for_thread(parameters);
      execute(kernel_.body);
    }
  }
  arrays_.resize(given);
  if (races_) races_->end_block();
}

Number* Interpreter::locate(Number handle, std::span<const std::int64_t> indices) {
  Number* found = element_at(handle, indices);
  if (races_) races_->note(found, array_of(handle).stride, {Race::Access::atomic, thread_, place_});
  return found;
}

void Interpreter::note(const Expr& place, const Number* first, int count, Race::Access access, bool same) {
  if (races_ && in_array(place)) races_->note(first, count, {access, thread_, place.place}, same);
}

Number* Interpreter::element_at(Number handle, std::span<const std::int64_t> indices) {
  ArrayView& array = array_of(handle);
  std::int64_t at = 0;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const std::int64_t extent = array.shape[axis];
    const std::int64_t index = indices[axis] < 0 ? indices[axis] + extent : indices[axis];
    if (index < 0 || index >= extent)
      fail(fmt::format("index [{}] is outside array '{}' of shape [{}]", fmt::join(indices, ", "), array.name,
                       fmt::join(array.shape, ", ")));
    at = at * extent + index;
  }
  return array.data + at * array.stride;
}

std::int64_t Interpreter::extent(Number handle, int axis) {
  return array_of(handle).shape[static_cast<std::size_t>(axis)];
}

std::int64_t Interpreter::thread_index(int axis) {
  if (axis < 0) return thread_;
  std::int64_t rest = thread_;
  for (std::size_t k = dim_.size() - 1; k > static_cast<std::size_t>(axis); --k) rest /= dim_[k];
  return rest % dim_[static_cast<std::size_t>(axis)];
}

void Interpreter::fail(std::string_view problem) {
  std::vector<std::int64_t> at;
  for (int axis = 0; axis < static_cast<int>(dim_.size()); ++axis) at.push_back(thread_index(axis));
  throw KernelError(
      module_.source.get(), place_,
      fmt::format("{} (thread [{}] of grid [{}])", problem, fmt::join(at, ", "), fmt::join(dim_, ", ")));
}

void interpret(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
               std::span<Value> arguments, const InterpretOptions& options) {
  std::vector<Race> races;
  InterpretOptions used = options;
  if (options.refuse_races && options.races == nullptr) used.races = &races;
  Interpreter(module, kernel, dim, used).run(arguments);
  if (options.refuse_races && !used.races->empty()) throw warning(module, used.races->front());
}

}  // namespace ferrite::kernel
