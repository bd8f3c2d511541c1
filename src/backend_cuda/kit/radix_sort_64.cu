// CUB's sort for keys of 64 bits.
#include "backend_cuda/kit/radix_sort.cuh"

template class ferrite::cuda::SortBuffers<std::uint64_t>;
