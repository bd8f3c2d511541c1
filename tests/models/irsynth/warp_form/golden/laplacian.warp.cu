

extern "C" __global__ void laplacian_cuda_kernel_forward(
    wp::launch_bounds_t<2> dim,
    wp::array_t<wp::float32> var_u,
    wp::array_t<wp::float32> var_r)
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
        wp::int32 var_1;
        bool var_2;
        const wp::int32 var_3 = 0;
        bool var_4;
        const wp::int32 var_5 = 0;
        bool var_6;
        wp::shape_t* var_7;
        const wp::int32 var_8 = 0;
        wp::int32 var_9;
        wp::shape_t var_10;
        const wp::int32 var_11 = 1;
        wp::int32 var_12;
        bool var_13;
        wp::shape_t* var_14;
        const wp::int32 var_15 = 1;
        wp::int32 var_16;
        wp::shape_t var_17;
        const wp::int32 var_18 = 1;
        wp::int32 var_19;
        bool var_20;
        const wp::int32 var_21 = 1;
        wp::int32 var_22;
        wp::float32* var_23;
        const wp::int32 var_24 = 1;
        wp::int32 var_25;
        wp::float32* var_26;
        wp::float32 var_27;
        wp::float32 var_28;
        wp::float32 var_29;
        const wp::int32 var_30 = 1;
        wp::int32 var_31;
        wp::float32* var_32;
        wp::float32 var_33;
        wp::float32 var_34;
        const wp::int32 var_35 = 1;
        wp::int32 var_36;
        wp::float32* var_37;
        wp::float32 var_38;
        wp::float32 var_39;
        const wp::float32 var_40 = 4.0;
        wp::float32* var_41;
        wp::float32 var_42;
        wp::float32 var_43;
        wp::float32 var_44;
        //---------
        // forward
        // def laplacian(u: wp.array2d[float], r: wp.array2d[float]):                             <L 13>
        // i, j = wp.tid()                                                                        <L 14>
        builtin_tid2d(var_0, var_1);
        // if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:                     <L 15>
        var_4 = (var_0 == var_3);
        var_2 = var_4;
        if (!var_2) {
            var_6 = (var_1 == var_5);
            var_2 = var_2 || var_6;
        }
        if (!var_2) {
            var_7 = &(var_u.shape);
            var_10 = wp::load(var_7);
            var_9 = wp::extract(var_10, var_8);
            var_12 = wp::sub(var_9, var_11);
            var_13 = (var_0 == var_12);
            var_2 = var_2 || var_13;
        }
        if (!var_2) {
            var_14 = &(var_u.shape);
            var_17 = wp::load(var_14);
            var_16 = wp::extract(var_17, var_15);
            var_19 = wp::sub(var_16, var_18);
            var_20 = (var_1 == var_19);
            var_2 = var_2 || var_20;
        }
        if (var_2) {
            // return                                                                             <L 16>
            continue;
        }
        // r[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]        <L 17>
        var_22 = wp::sub(var_0, var_21);
        var_23 = wp::address(var_u, var_22, var_1);
        var_25 = wp::add(var_0, var_24);
        var_26 = wp::address(var_u, var_25, var_1);
        var_28 = wp::load(var_23);
        var_29 = wp::load(var_26);
        var_27 = wp::add(var_28, var_29);
        var_31 = wp::sub(var_1, var_30);
        var_32 = wp::address(var_u, var_0, var_31);
        var_34 = wp::load(var_32);
        var_33 = wp::add(var_27, var_34);
        var_36 = wp::add(var_1, var_35);
        var_37 = wp::address(var_u, var_0, var_36);
        var_39 = wp::load(var_37);
        var_38 = wp::add(var_33, var_39);
        var_41 = wp::address(var_u, var_0, var_1);
        var_43 = wp::load(var_41);
        var_42 = wp::mul(var_40, var_43);
        var_44 = wp::sub(var_38, var_42);
        wp::array_store(var_r, var_0, var_1, var_44);
    }
}



extern "C" __global__ void laplacian_cuda_kernel_backward(
    wp::launch_bounds_t<2> dim,
    wp::array_t<wp::float32> var_u,
    wp::array_t<wp::float32> var_r,
    wp::array_t<wp::float32> adj_u,
    wp::array_t<wp::float32> adj_r)
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
        wp::int32 var_1;
        bool var_2;
        const wp::int32 var_3 = 0;
        bool var_4;
        const wp::int32 var_5 = 0;
        bool var_6;
        wp::shape_t* var_7;
        const wp::int32 var_8 = 0;
        wp::int32 var_9;
        wp::shape_t var_10;
        const wp::int32 var_11 = 1;
        wp::int32 var_12;
        bool var_13;
        wp::shape_t* var_14;
        const wp::int32 var_15 = 1;
        wp::int32 var_16;
        wp::shape_t var_17;
        const wp::int32 var_18 = 1;
        wp::int32 var_19;
        bool var_20;
        const wp::int32 var_21 = 1;
        wp::int32 var_22;
        wp::float32* var_23;
        const wp::int32 var_24 = 1;
        wp::int32 var_25;
        wp::float32* var_26;
        wp::float32 var_27;
        wp::float32 var_28;
        wp::float32 var_29;
        const wp::int32 var_30 = 1;
        wp::int32 var_31;
        wp::float32* var_32;
        wp::float32 var_33;
        wp::float32 var_34;
        const wp::int32 var_35 = 1;
        wp::int32 var_36;
        wp::float32* var_37;
        wp::float32 var_38;
        wp::float32 var_39;
        const wp::float32 var_40 = 4.0;
        wp::float32* var_41;
        wp::float32 var_42;
        wp::float32 var_43;
        wp::float32 var_44;
        //---------
        // dual vars
        wp::int32 adj_0 = {};
        wp::int32 adj_1 = {};
        bool adj_2 = {};
        wp::int32 adj_3 = {};
        bool adj_4 = {};
        wp::int32 adj_5 = {};
        bool adj_6 = {};
        wp::shape_t adj_7 = {};
        wp::int32 adj_8 = {};
        wp::int32 adj_9 = {};
        wp::shape_t adj_10 = {};
        wp::int32 adj_11 = {};
        wp::int32 adj_12 = {};
        bool adj_13 = {};
        wp::shape_t adj_14 = {};
        wp::int32 adj_15 = {};
        wp::int32 adj_16 = {};
        wp::shape_t adj_17 = {};
        wp::int32 adj_18 = {};
        wp::int32 adj_19 = {};
        bool adj_20 = {};
        wp::int32 adj_21 = {};
        wp::int32 adj_22 = {};
        wp::float32 adj_23 = {};
        wp::int32 adj_24 = {};
        wp::int32 adj_25 = {};
        wp::float32 adj_26 = {};
        wp::float32 adj_27 = {};
        wp::float32 adj_28 = {};
        wp::float32 adj_29 = {};
        wp::int32 adj_30 = {};
        wp::int32 adj_31 = {};
        wp::float32 adj_32 = {};
        wp::float32 adj_33 = {};
        wp::float32 adj_34 = {};
        wp::int32 adj_35 = {};
        wp::int32 adj_36 = {};
        wp::float32 adj_37 = {};
        wp::float32 adj_38 = {};
        wp::float32 adj_39 = {};
        wp::float32 adj_40 = {};
        wp::float32 adj_41 = {};
        wp::float32 adj_42 = {};
        wp::float32 adj_43 = {};
        wp::float32 adj_44 = {};
        //---------
        // forward
        // def laplacian(u: wp.array2d[float], r: wp.array2d[float]):                             <L 13>
        // i, j = wp.tid()                                                                        <L 14>
        builtin_tid2d(var_0, var_1);
        // if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:                     <L 15>
        var_4 = (var_0 == var_3);
        var_2 = var_4;
        if (!var_2) {
            var_6 = (var_1 == var_5);
            var_2 = var_2 || var_6;
        }
        if (!var_2) {
            var_7 = &(var_u.shape);
            var_10 = wp::load(var_7);
            var_9 = wp::extract(var_10, var_8);
            var_12 = wp::sub(var_9, var_11);
            var_13 = (var_0 == var_12);
            var_2 = var_2 || var_13;
        }
        if (!var_2) {
            var_14 = &(var_u.shape);
            var_17 = wp::load(var_14);
            var_16 = wp::extract(var_17, var_15);
            var_19 = wp::sub(var_16, var_18);
            var_20 = (var_1 == var_19);
            var_2 = var_2 || var_20;
        }
        if (var_2) {
            // return                                                                             <L 16>
            goto label0;
        }
        // r[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]        <L 17>
        var_22 = wp::sub(var_0, var_21);
        var_23 = wp::address(var_u, var_22, var_1);
        var_25 = wp::add(var_0, var_24);
        var_26 = wp::address(var_u, var_25, var_1);
        var_28 = wp::load(var_23);
        var_29 = wp::load(var_26);
        var_27 = wp::add(var_28, var_29);
        var_31 = wp::sub(var_1, var_30);
        var_32 = wp::address(var_u, var_0, var_31);
        var_34 = wp::load(var_32);
        var_33 = wp::add(var_27, var_34);
        var_36 = wp::add(var_1, var_35);
        var_37 = wp::address(var_u, var_0, var_36);
        var_39 = wp::load(var_37);
        var_38 = wp::add(var_33, var_39);
        var_41 = wp::address(var_u, var_0, var_1);
        var_43 = wp::load(var_41);
        var_42 = wp::mul(var_40, var_43);
        var_44 = wp::sub(var_38, var_42);
        // wp::array_store(var_r, var_0, var_1, var_44);
        //---------
        // reverse
        wp::adj_array_store(var_r, var_0, var_1, var_44, adj_r, adj_0, adj_1, adj_44);
        wp::adj_sub(var_38, var_42, adj_38, adj_42, adj_44);
        wp::adj_mul(var_40, var_43, adj_40, adj_41, adj_42);
        wp::adj_address(var_u, var_0, var_1, adj_u, adj_0, adj_1, adj_41);
        wp::adj_add(var_33, var_39, adj_33, adj_37, adj_38);
        wp::adj_address(var_u, var_0, var_36, adj_u, adj_0, adj_36, adj_37);
        wp::adj_add(var_1, var_35, adj_1, adj_35, adj_36);
        wp::adj_add(var_27, var_34, adj_27, adj_32, adj_33);
        wp::adj_address(var_u, var_0, var_31, adj_u, adj_0, adj_31, adj_32);
        wp::adj_sub(var_1, var_30, adj_1, adj_30, adj_31);
        wp::adj_add(var_28, var_29, adj_23, adj_26, adj_27);
        wp::adj_address(var_u, var_25, var_1, adj_u, adj_25, adj_1, adj_26);
        wp::adj_add(var_0, var_24, adj_0, adj_24, adj_25);
        wp::adj_address(var_u, var_22, var_1, adj_u, adj_22, adj_1, adj_23);
        wp::adj_sub(var_0, var_21, adj_0, adj_21, adj_22);
        // adj: r[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]   <L 17>
        if (var_2) {
            label0:;
            // adj: return                                                                        <L 16>
        }
        if (!var_2) {
            wp::adj_sub(var_16, var_18, adj_16, adj_18, adj_19);
            adj_u.shape = adj_14;
        }
        if (!var_2) {
            wp::adj_sub(var_9, var_11, adj_9, adj_11, adj_12);
            adj_u.shape = adj_7;
        }
        if (!var_2) {
        }
        // adj: if i == 0 or j == 0 or i == u.shape[0] - 1 or j == u.shape[1] - 1:                <L 15>
        // adj: i, j = wp.tid()                                                                   <L 14>
        // adj: def laplacian(u: wp.array2d[float], r: wp.array2d[float]):                        <L 13>
        continue;
    }
}

