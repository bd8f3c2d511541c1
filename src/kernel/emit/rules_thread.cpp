// How threads, arrays, choices and atomics are written. $0 of an atomic is the element. GPUs have atomics for
// some types; others are built on atomicCAS. On the CPU threads run one after the other.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;
using S = ScalarType;

bool array(Types t) { return t[0].is_array(); }
bool element_composite(Types t) { return t[0].element().is_composite(); }
bool element_i64(Types t) { return t[0].scalar == S::i64; }
/// Types of the hardware's integer atomics.
bool native(Types t) { return t[0].scalar == S::i32 || t[0].scalar == S::u32 || t[0].scalar == S::u64; }
bool native_add(Types t) { return native(t) || is_float(t[0].scalar); }
bool native_order(Types t) { return native(t) || element_i64(t); }
bool element_real(Types t) { return is_float(t[0].scalar); }
bool native_exchange(Types t) { return native(t) || t[0].scalar == S::f32; }
bool native_sums(Types t) { return element_composite(t) && !t[0].element().is_matrix() && native_add(t); }

constexpr EmitRule rules[] = {
    {Builtin::tid, any, {"int(thread)", "thread"}},
    {Builtin::block_dim, any, {"int(blockDim.x)", "launch->block_dim"}},
    {Builtin::sync_threads, any, {"__syncthreads()", "/* barrier */"}},
    {Builtin::len, array, "$0.shape[0]"},
    {Builtin::len, any, "$n"},
    {Builtin::shape, any, "$0.shape[$1]"},
    {Builtin::where, any, "$0 ? $1 : $2"},

    {Builtin::atomic_add, native_sums, cuda_only("atomic_add($0, $1)"), "each atomicAdd(&at[i], value[i])"},
    {Builtin::atomic_add, element_composite, cuda_only("atomic_add($0, $1)"),
     "each atomic_add(at[i], value[i])", "atomic_add:C"},
    {Builtin::atomic_add, native_add, cuda_only("atomicAdd(&$0, $1)")},
    {Builtin::atomic_add, element_i64, cuda_only("atomic_add($0, $1)"),
     "return int64(atomicAdd(reinterpret_cast<uint64*>(&at), uint64(value)));", "@uint64"},
    {Builtin::atomic_add, any, "atomic_add($0, $1)", "cas old + value", "add:EE"},
    {Builtin::atomic_sub, native_sums, cuda_only("atomic_sub($0, $1)"), "each atomicAdd(&at[i], -value[i])"},
    {Builtin::atomic_sub, element_composite, cuda_only("atomic_sub($0, $1)"),
     "each atomic_sub(at[i], value[i])", "atomic_sub:C"},
    {Builtin::atomic_sub, native_add, cuda_only("atomicAdd(&$0, -$1)")},
    {Builtin::atomic_sub, element_i64, cuda_only("atomic_sub($0, $1)"),
     "return int64(atomicAdd(reinterpret_cast<uint64*>(&at), -uint64(value)));", "@uint64"},
    {Builtin::atomic_sub, any, "atomic_sub($0, $1)", "cas old - value", "sub:EE"},
    {Builtin::atomic_min, native_order, cuda_only("atomicMin(&$0, $1)")},
    {Builtin::atomic_min, element_real, "atomic_min($0, $1)",
     "cas old != old || value < old ? value : old"},  // a number wins over NaN
    {Builtin::atomic_min, any, "atomic_min($0, $1)", "cas value < old ? value : old"},
    {Builtin::atomic_max, native_order, cuda_only("atomicMax(&$0, $1)")},
    {Builtin::atomic_max, element_real, "atomic_max($0, $1)",
     "cas old != old || value > old ? value : old"},  // a number wins over NaN
    {Builtin::atomic_max, any, "atomic_max($0, $1)", "cas value > old ? value : old"},
    {Builtin::atomic_exch, native_exchange, cuda_only("atomicExch(&$0, $1)")},
    {Builtin::atomic_exch, any, "atomic_exch($0, $1)", "cas value"},
    {Builtin::atomic_cas, native, cuda_only("atomicCAS(&$0, $1, $2)")},
    {Builtin::atomic_cas, any, "atomic_cas($0, $1, $2)", "cas old == compare ? value : old"},
    {Builtin::atomic_and, native, cuda_only("atomicAnd(&$0, $1)")},
    {Builtin::atomic_and, any, "atomic_and($0, $1)", "cas old & value"},
    {Builtin::atomic_or, native, cuda_only("atomicOr(&$0, $1)")},
    {Builtin::atomic_or, any, "atomic_or($0, $1)", "cas old | value"},
    {Builtin::atomic_xor, native, cuda_only("atomicXor(&$0, $1)")},
    {Builtin::atomic_xor, any, "atomic_xor($0, $1)", "cas old ^ value"},
    {Builtin::expect_eq, any, "expect($0 == $1, $where)", "", "@expect eq:AA"},
    {Builtin::expect_near, scalar, "expect(are_near($0, $1, $2), $where)",
     "return $m{fabs}(a - b) <= tolerance;", "@expect"},
    {Builtin::expect_near, matrix, "expect(are_near($0, $1, $2), $where)", R"(
for (int i = 0; i < $n; ++i)
  for (int j = 0; j < $n; ++j)
    if (!($m{fabs}(a[i][j] - b[i][j]) <= tolerance)) return false;
return true;)",
     "@expect"},
    {Builtin::expect_near, any, "expect(are_near($0, $1, $2), $where)", R"(
for (int i = 0; i < $n; ++i)
  if (!($m{fabs}(a[i] - b[i]) <= tolerance)) return false;
return true;)",
     "@expect"},
};

}  // namespace

std::span<const EmitRule> thread_rules() { return rules; }

}  // namespace ferrite::kernel
