

extern "C" __global__ void centre_cuda_kernel_forward(
    wp::launch_bounds_t<1> dim,
    wp::array_t<wp::vec_t<3, wp::float32>> var_x,
    wp::int32 var_n,
    wp::array_t<wp::vec_t<3, wp::float32>> var_total)
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
        const wp::float32 var_1 = 0.0;
        wp::vec_t<3, wp::float32> var_2;
        wp::range_t var_3;
        wp::int32 var_4;
        wp::vec_t<3, wp::float32>* var_5;
        wp::vec_t<3, wp::float32>* var_6;
        wp::vec_t<3, wp::float32> var_7;
        wp::vec_t<3, wp::float32> var_8;
        wp::vec_t<3, wp::float32> var_9;
        wp::vec_t<3, wp::float32> var_10;
        wp::vec_t<3, wp::float32> var_11;
        const wp::int32 var_12 = 0;
        wp::float32 var_13;
        wp::vec_t<3, wp::float32> var_14;
        wp::vec_t<3, wp::float32> var_15;
        //---------
        // forward
        // def centre(x: wp.array[wp.vec3], n: int, total: wp.array[wp.vec3]):                    <L 21>
        // i = wp.tid()                                                                           <L 22>
        var_0 = builtin_tid1d();
        // s = wp.vec3(0.0)                                                                       <L 23>
        var_2 = wp::vec_t<3, wp::float32>(var_1);
        // for j in range(n):                                                                     <L 24>
        var_3 = wp::range(var_n);
        start_for_0:;
            if (iter_cmp(var_3) == 0) goto end_for_0;
            var_4 = wp::iter_next(var_3);
            // s += wp.normalize(x[j] - x[i])                                                     <L 25>
            var_5 = wp::address(var_x, var_4);
            var_6 = wp::address(var_x, var_0);
            var_8 = wp::load(var_5);
            var_9 = wp::load(var_6);
            var_7 = wp::sub(var_8, var_9);
            var_10 = wp::normalize(var_7);
            var_11 = wp::add(var_2, var_10);
            wp::assign(var_2, var_11);
            goto start_for_0;
        end_for_0:;
        // wp.atomic_add(total, 0, s / float(n))                                                  <L 26>
        var_13 = wp::float(var_n);
        var_14 = wp::div(var_2, var_13);
        var_15 = wp::atomic_add(var_total, var_12, var_14);
    }
}



extern "C" __global__ void centre_cuda_kernel_backward(
    wp::launch_bounds_t<1> dim,
    wp::array_t<wp::vec_t<3, wp::float32>> var_x,
    wp::int32 var_n,
    wp::array_t<wp::vec_t<3, wp::float32>> var_total,
    wp::array_t<wp::vec_t<3, wp::float32>> adj_x,
    wp::int32 adj_n,
    wp::array_t<wp::vec_t<3, wp::float32>> adj_total)
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
        const wp::float32 var_1 = 0.0;
        wp::vec_t<3, wp::float32> var_2;
        wp::range_t var_3;
        wp::int32 var_4;
        wp::vec_t<3, wp::float32>* var_5;
        wp::vec_t<3, wp::float32>* var_6;
        wp::vec_t<3, wp::float32> var_7;
        wp::vec_t<3, wp::float32> var_8;
        wp::vec_t<3, wp::float32> var_9;
        wp::vec_t<3, wp::float32> var_10;
        wp::vec_t<3, wp::float32> var_11;
        const wp::int32 var_12 = 0;
        wp::float32 var_13;
        wp::vec_t<3, wp::float32> var_14;
        wp::vec_t<3, wp::float32> var_15;
        //---------
        // dual vars
        wp::int32 adj_0 = {};
        wp::float32 adj_1 = {};
        wp::vec_t<3, wp::float32> adj_2 = {};
        wp::range_t adj_3 = {};
        wp::int32 adj_4 = {};
        wp::vec_t<3, wp::float32> adj_5 = {};
        wp::vec_t<3, wp::float32> adj_6 = {};
        wp::vec_t<3, wp::float32> adj_7 = {};
        wp::vec_t<3, wp::float32> adj_8 = {};
        wp::vec_t<3, wp::float32> adj_9 = {};
        wp::vec_t<3, wp::float32> adj_10 = {};
        wp::vec_t<3, wp::float32> adj_11 = {};
        wp::int32 adj_12 = {};
        wp::float32 adj_13 = {};
        wp::vec_t<3, wp::float32> adj_14 = {};
        wp::vec_t<3, wp::float32> adj_15 = {};
        //---------
        // forward
        // def centre(x: wp.array[wp.vec3], n: int, total: wp.array[wp.vec3]):                    <L 21>
        // i = wp.tid()                                                                           <L 22>
        var_0 = builtin_tid1d();
        // s = wp.vec3(0.0)                                                                       <L 23>
        var_2 = wp::vec_t<3, wp::float32>(var_1);
        // for j in range(n):                                                                     <L 24>
        var_3 = wp::range(var_n);
        // wp.atomic_add(total, 0, s / float(n))                                                  <L 26>
        var_13 = wp::float(var_n);
        var_14 = wp::div(var_2, var_13);
        // var_15 = wp::atomic_add(var_total, var_12, var_14);
        //---------
        // reverse
        wp::adj_atomic_add(var_total, var_12, var_14, adj_total, adj_12, adj_14, adj_15);
        wp::adj_div(var_2, var_13, adj_2, adj_13, adj_14);
        wp::adj_float(var_n, adj_n, adj_13);
        // adj: wp.atomic_add(total, 0, s / float(n))                                             <L 26>
        var_3 = wp::iter_reverse(var_3);
        start_for_0:;
            if (iter_cmp(var_3) == 0) goto end_for_0;
            var_4 = wp::iter_next(var_3);
        	adj_5 = {};
        	adj_6 = {};
        	adj_7 = {};
        	adj_8 = {};
        	adj_9 = {};
        	adj_10 = {};
        	adj_11 = {};
            // s += wp.normalize(x[j] - x[i])                                                     <L 25>
            var_5 = wp::address(var_x, var_4);
            var_6 = wp::address(var_x, var_0);
            var_8 = wp::load(var_5);
            var_9 = wp::load(var_6);
            var_7 = wp::sub(var_8, var_9);
            var_10 = wp::normalize(var_7);
            var_11 = wp::add(var_2, var_10);
            wp::assign(var_2, var_11);
            wp::adj_assign(var_2, var_11, adj_2, adj_11);
            wp::adj_add(var_2, var_10, adj_2, adj_10, adj_11);
            wp::adj_normalize(var_7, var_10, adj_7, adj_10);
            wp::adj_sub(var_8, var_9, adj_5, adj_6, adj_7);
            wp::adj_address(var_x, var_0, adj_x, adj_0, adj_6);
            wp::adj_address(var_x, var_4, adj_x, adj_4, adj_5);
            // adj: s += wp.normalize(x[j] - x[i])                                                <L 25>
        	goto start_for_0;
        end_for_0:;
        // adj: for j in range(n):                                                                <L 24>
        wp::adj_vec_t(var_1, adj_1, adj_2);
        // adj: s = wp.vec3(0.0)                                                                  <L 23>
        // adj: i = wp.tid()                                                                      <L 22>
        // adj: def centre(x: wp.array[wp.vec3], n: int, total: wp.array[wp.vec3]):               <L 21>
        continue;
    }
}

