

extern "C" __global__ void saxpy_cuda_kernel_forward(
    wp::launch_bounds_t<1> dim,
    wp::float32 var_a,
    wp::array_t<wp::float32> var_x,
    wp::array_t<wp::float32> var_y)
{
    wp::tile_shared_storage_t tile_mem;

    for (size_t _idx = static_cast<size_t>(blockDim.x) * static_cast<size_t>(blockIdx.x) + static_cast<size_t>(threadIdx.x);
         _idx < dim.size;
         _idx += static_cast<size_t>(blockDim.x) * static_cast<size_t>(gridDim.x))
    {
            // reset shared memory allocator
        wp::tile_shared_storage_t::init();

        //---------
        // primal vars
        wp::int32 var_0;
        wp::float32* var_1;
        wp::float32 var_2;
        wp::float32 var_3;
        wp::float32* var_4;
        wp::float32 var_5;
        wp::float32 var_6;
        //---------
        // forward
        // def saxpy(a: float, x: wp.array[float], y: wp.array[float]):                           <L 7>
        // i = wp.tid()                                                                           <L 8>
        var_0 = builtin_tid1d();
        // y[i] = a * x[i] + y[i]                                                                 <L 9>
        var_1 = wp::address(var_x, var_0);
        var_3 = wp::load(var_1);
        var_2 = wp::mul(var_a, var_3);
        var_4 = wp::address(var_y, var_0);
        var_6 = wp::load(var_4);
        var_5 = wp::add(var_2, var_6);
        wp::array_store(var_y, var_0, var_5);
    }
}



extern "C" __global__ void saxpy_cuda_kernel_backward(
    wp::launch_bounds_t<1> dim,
    wp::float32 var_a,
    wp::array_t<wp::float32> var_x,
    wp::array_t<wp::float32> var_y,
    wp::float32 adj_a,
    wp::array_t<wp::float32> adj_x,
    wp::array_t<wp::float32> adj_y)
{
    wp::tile_shared_storage_t tile_mem;

    for (size_t _idx = static_cast<size_t>(blockDim.x) * static_cast<size_t>(blockIdx.x) + static_cast<size_t>(threadIdx.x);
         _idx < dim.size;
         _idx += static_cast<size_t>(blockDim.x) * static_cast<size_t>(gridDim.x))
    {
            // reset shared memory allocator
        wp::tile_shared_storage_t::init();

        //---------
        // primal vars
        wp::int32 var_0;
        wp::float32* var_1;
        wp::float32 var_2;
        wp::float32 var_3;
        wp::float32* var_4;
        wp::float32 var_5;
        wp::float32 var_6;
        //---------
        // dual vars
        wp::int32 adj_0 = {};
        wp::float32 adj_1 = {};
        wp::float32 adj_2 = {};
        wp::float32 adj_3 = {};
        wp::float32 adj_4 = {};
        wp::float32 adj_5 = {};
        wp::float32 adj_6 = {};
        //---------
        // forward
        // def saxpy(a: float, x: wp.array[float], y: wp.array[float]):                           <L 7>
        // i = wp.tid()                                                                           <L 8>
        var_0 = builtin_tid1d();
        // y[i] = a * x[i] + y[i]                                                                 <L 9>
        var_1 = wp::address(var_x, var_0);
        var_3 = wp::load(var_1);
        var_2 = wp::mul(var_a, var_3);
        var_4 = wp::address(var_y, var_0);
        var_6 = wp::load(var_4);
        var_5 = wp::add(var_2, var_6);
        // wp::array_store(var_y, var_0, var_5);
        //---------
        // reverse
        wp::adj_array_store(var_y, var_0, var_5, adj_y, adj_0, adj_5);
        wp::adj_add(var_2, var_6, adj_2, adj_4, adj_5);
        wp::adj_address(var_y, var_0, adj_y, adj_0, adj_4);
        wp::adj_mul(var_a, var_3, adj_a, adj_1, adj_2);
        wp::adj_address(var_x, var_0, adj_x, adj_0, adj_1);
        // adj: y[i] = a * x[i] + y[i]                                                            <L 9>
        // adj: i = wp.tid()                                                                      <L 8>
        // adj: def saxpy(a: float, x: wp.array[float], y: wp.array[float]):                      <L 7>
        continue;
    }
}

