// The first two steps with an MLP, for NVIDIA GPUs: pooled vectors, hidden units and what is summed over them stay in
// a block's registers and shared memory. Compiled for one dimension D (d rounded up to a multiple of 32), MT tiles of
// 16 samples to a warp, and one activation PHI.
//
// Products are of float16 pairs: x = high + low holds 22 bits, and x y = high high + high low + low high leaves out
// 2^-22 of it. Arrays are scaled by powers of two so that float16 holds them (`scale`: of pooled vectors, of errors).
// Samples come in the order of their labels. Arrays have a leading axis over trials, which is blockIdx.y.

#define WARPS 4
#define HELD 32                   // hidden units at a time
#define ROWS (WARPS * 16 * MT)    // samples to a block
#define PITCH (D + 8)             // float16 numbers from row to row: 8 rows of a matrix stand in different banks
#define VECTORS (D / 32)          // float4 numbers of a d-vector that each of 8 lanes has
#define ALL 0xFFFFFFFFu

__device__ __forceinline__ float phi(float a) {
#if PHI == 0
    return fmaxf(a, 0.f);
#elif PHI == 1
    return 0.5f * a * erfcf(-a * 0.70710678f);
#elif PHI == 2
    return tanhf(a);
#elif PHI == 3
    return a;
#elif PHI == 4
    return (a * a - 1.f) * 0.70710678f;
#else
    return (a * a - 3.f) * a * 0.40824829f;
#endif
}

__device__ __forceinline__ float slope(float a) {
#if PHI == 0
    return a > 0.f ? 1.f : a < 0.f ? 0.f : 0.5f;
#elif PHI == 1
    return 0.5f * erfcf(-a * 0.70710678f) + a * 0.39894228f * expf(-0.5f * a * a);
#elif PHI == 2
    const float t = tanhf(a);
    return 1.f - t * t;
#elif PHI == 3
    return 1.f;
#elif PHI == 4
    return a * 1.41421356f;
#else
    return (a * a - 1.f) * 1.22474487f;
#endif
}

__device__ __forceinline__ u32 pack(float x, float y) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}
__device__ __forceinline__ void unpack(u32 both, float& x, float& y) {
    asm("{.reg .b16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(x), "=f"(y) : "r"(both));
}
__device__ __forceinline__ void split(float x, float y, u32& high, u32& low) {
    float a, b;
    high = pack(x, y);
    unpack(high, a, b);
    low = pack(x - a, y - b);
}
__device__ __forceinline__ void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ u32 shared_address(const void* pointer) { return (u32)__cvta_generic_to_shared(pointer); }
__device__ __forceinline__ void load(u32 (&m)[4], const u32* pointer) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(pointer)));
}
__device__ __forceinline__ void load_transposed(u32 (&m)[4], const u32* pointer) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(pointer)));
}

// Float16 numbers are kept two to a word; `at` is the word of (row, column), the column even.
__device__ __forceinline__ int at(int row, int column) { return (row * PITCH + column) / 2; }

// A block's samples and its place in shared memory.
struct Block {
    const Stream stream;
    const int trial, lane, warp, first_row, V, L, d, m, additive;
    u32 total;                              // samples there are
    u32 *high, *low, *weights;              // pooled vectors, and two buffers of weights, high and low
    u32 *sample, *label;                    // of every row
    const float *Z, *trigger;
    const u32* W;

    __device__ Block(const u32* key, const u32* order, const u32* start, const u32* labels, const u32* first,
                     const float* Z, const float* trigger, const u32* W, u32* memory, int V, int L, int d, int m,
                     int additive, int size)
        : stream(key, blockIdx.y, V, L), trial(blockIdx.y), lane(threadIdx.x % 32), warp(threadIdx.x / 32),
          first_row(blockIdx.x * ROWS), V(V), L(L), d(d), m(m), additive(additive),
          total(start[(size_t)blockIdx.y * (V + 1) + V]), high(memory), low(memory + ROWS * PITCH / 2),
          weights(memory + ROWS * PITCH), sample(memory + ROWS * PITCH + 2 * HELD * PITCH),
          label(memory + ROWS * PITCH + 2 * HELD * PITCH + ROWS), Z(Z + (size_t)blockIdx.y * V * d),
          trigger(trigger + (size_t)blockIdx.y * d), W(W + (size_t)blockIdx.y * padded() * D) {
        for (int row = threadIdx.x; row < ROWS; row += blockDim.x) {
            const bool live = first_row + row < total;
            const u32 i = live ? order[(size_t)trial * size + first_row + row] : 0;
            sample[row] = i;
            label[row] = live ? labels[(size_t)trial * size + (i - first[trial])] : ALL;
        }
    }
    // Hidden units, rounded up to whole pieces.
    __device__ __forceinline__ int padded() const { return (m + HELD - 1) / HELD * HELD; }
    __device__ __forceinline__ int own_row(int r) const { return warp * 16 * MT + r; }

    // visit(token, position) for every token of sample i: 8 lanes have one together, 4 tokens at a time.
    template <class Visit>
    __device__ __forceinline__ void tokens(u32 i, Visit visit) const {
        for (u32 begin = 0; begin < stream.half; begin += 32) {
            u32 a = 0, b = 0;
            const u32 counters = min(32u, stream.half - begin);
            if (lane < counters) stream.tokens(i, begin + lane, a, b);
#pragma unroll
            for (u32 step = 0; step < 32; step += 4) {
                if (step >= counters) break;
                const u32 from = step + lane / 8, c = begin + from;
                const u32 one = __shfl_sync(ALL, a, from), two = __shfl_sync(ALL, b, from);
                visit(one, c, from < counters);
                visit(two, stream.half + c, from < counters && stream.paired(c));
            }
        }
    }
    __device__ __forceinline__ float4 part(const float* vector, int j) const {
        const int k = 32 * j + 4 * (lane % 8);
        return k < d ? *(const float4*)(vector + k) : make_float4(0, 0, 0, 0);
    }

    // xbar of the warp's own rows: the mean of their values, in float16 pairs, times `scale`.
    __device__ __forceinline__ void pool(float scale) {
        for (int r = 0; r < 16 * MT; r++) {
            const int row = own_row(r);
            float4 sum[VECTORS];
#pragma unroll
            for (int j = 0; j < VECTORS; j++) sum[j] = make_float4(0, 0, 0, 0);
            if (label[row] != ALL)
                tokens(sample[row], [&](u32 token, u32, bool live) {
#pragma unroll
                    for (int j = 0; j < VECTORS; j++) {
                        const float4 z = live ? part(Z + (size_t)token * d, j) : make_float4(0, 0, 0, 0);
                        sum[j].x += z.x;
                        sum[j].y += z.y;
                        sum[j].z += z.z;
                        sum[j].w += z.w;
                    }
                });
#pragma unroll
            for (int j = 0; j < VECTORS; j++) {
                float* parts = &sum[j].x;
                const float4 mark = additive && label[row] != ALL ? part(trigger, j) : make_float4(0, 0, 0, 0);
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    parts[e] += __shfl_xor_sync(ALL, parts[e], 8);
                    parts[e] += __shfl_xor_sync(ALL, parts[e], 16);
                    parts[e] = (parts[e] + (&mark.x)[e]) / L * scale;
                }
                if (lane / 8 == j % 4) {
                    const int word = at(row, 32 * j + 4 * (lane % 8));
                    split(parts[0], parts[1], high[word], low[word]);
                    split(parts[2], parts[3], high[word + 1], low[word + 1]);
                }
            }
        }
        __syncwarp();
    }

    // Begin to copy the weights of a piece of hidden units into one of the two buffers.
    __device__ __forceinline__ void fetch(int piece) const {
        u32* to = weights + piece % 2 * HELD * PITCH;
        for (int part = threadIdx.x; part < 2 * HELD * D / 8; part += blockDim.x) {
            const int half = part / (HELD * D / 8), left = part % (HELD * D / 8);
            const int row = left / (D / 8), column = left % (D / 8) * 8;
            const u32* from = W + ((size_t)half * padded() + piece * HELD + row) * (D / 2) + column / 2;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             shared_address(to + half * HELD * PITCH / 2 + at(row, column))),
                         "l"(from));
        }
        asm volatile("cp.async.commit_group;");
    }

    // body(piece, its weights) over all hidden units; the next piece is on its way meanwhile.
    template <class Body>
    __device__ __forceinline__ void over_hidden(Body body) const {
        const int pieces = padded() / HELD;
        for (int piece = 0; piece < pieces; piece++) {
            if (piece + 1 < pieces) {
                fetch(piece + 1);
                asm volatile("cp.async.wait_group 1;");
            } else {
                asm volatile("cp.async.wait_group 0;");
            }
            __syncthreads();
            body(piece * HELD, weights + piece % 2 * HELD * PITCH);
            __syncthreads();
        }
    }

    // W xbar, times the scale of xbar, of the warp's rows.
    __device__ __forceinline__ void activate(float (&a)[MT][HELD / 8][4], const u32* W_high) const {
        const u32* W_low = W_high + HELD * PITCH / 2;
#pragma unroll
        for (int tile = 0; tile < MT; tile++)
#pragma unroll
            for (int n = 0; n < HELD / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) a[tile][n][e] = 0;
#pragma unroll
        for (int k = 0; k < D; k += 16) {
            u32 x_high[MT][4], x_low[MT][4];
#pragma unroll
            for (int tile = 0; tile < MT; tile++) {
                const int word = at(own_row(16 * tile + lane % 16), k + lane / 16 * 8);
                load(x_high[tile], high + word);
                load(x_low[tile], low + word);
            }
#pragma unroll
            for (int n = 0; n < HELD / 8; n += 2) {
                u32 w_high[4], w_low[4];
                const int word = at(8 * n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8);
                load(w_high, W_high + word);
                load(w_low, W_low + word);
#pragma unroll
                for (int tile = 0; tile < MT; tile++)
#pragma unroll
                    for (int two = 0; two < 2; two++) {
                        float(&sum)[4] = a[tile][n + two];
                        multiply(sum, x_low[tile], w_high[2 * two], w_high[2 * two + 1]);
                        multiply(sum, x_high[tile], w_low[2 * two], w_low[2 * two + 1]);
                        multiply(sum, x_high[tile], w_high[2 * two], w_high[2 * two + 1]);
                    }
            }
        }
    }
};

// total[y] += phi(W_in xbar_i), over the samples i of label y.
extern "C" __global__ void __launch_bounds__(128)
    add_hidden(const u32* key, const u32* order, const u32* start, const u32* labels, const u32* first, const float* Z,
               const float* trigger, const u32* W, const float* scale, float* total, int V, int L, int d, int m,
               int additive, int size) {
    extern __shared__ __align__(16) u32 memory[];
    Block block(key, order, start, labels, first, Z, trigger, W, memory, V, L, d, m, additive, size);
    if (block.first_row >= block.total) return;
    block.fetch(0);
    __syncthreads();
    const float up = scale[2 * block.trial], down = 1.f / up;
    block.pool(up);
    total += (size_t)block.trial * V * m;
    const int lane = block.lane, g = lane / 4, t = lane % 4;
    const u32* label = block.label + block.own_row(0);
    const u32 mine = lane < 16 * MT ? label[lane] : ALL;
    const bool begins = mine != ALL && (lane == 0 || label[lane - 1] != mine);
    const int labels_here = __popc(__ballot_sync(ALL, begins));
    block.over_hidden([&](int h, const u32* weights) {
        float a[MT][HELD / 8][4];
        block.activate(a, weights);
#pragma unroll
        for (int tile = 0; tile < MT; tile++)
#pragma unroll
            for (int n = 0; n < HELD / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) a[tile][n][e] = phi(a[tile][n][e] * down);
        if (labels_here > 8) {  // few rows to a label: adding them up first would cost more
#pragma unroll
            for (int tile = 0; tile < MT; tile++)
#pragma unroll
                for (int n = 0; n < HELD / 8; n++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const u32 y = label[16 * tile + g + e / 2 * 8];
                        const int unit = h + 8 * n + 2 * t + e % 2;
                        if (y != ALL && unit < m) atomicAdd(&total[(size_t)y * m + unit], a[tile][n][e]);
                    }
            return;
        }
        u32 left = __ballot_sync(ALL, mine != ALL);
        while (left) {
            const u32 y = __shfl_sync(ALL, mine, __ffs(left) - 1);
            const u32 rows = __ballot_sync(ALL, mine == y);
#pragma unroll
            for (int n = 0; n < HELD / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float sum = 0;
#pragma unroll
                    for (int tile = 0; tile < MT; tile++) {
                        if (rows >> (16 * tile + g) & 1) sum += a[tile][n][e];
                        if (rows >> (16 * tile + g + 8) & 1) sum += a[tile][n][2 + e];
                    }
                    for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
                    const int unit = h + 8 * n + 2 * t + e;
                    if (g == 0 && unit < m) atomicAdd(&total[(size_t)y * m + unit], sum);
                }
            left &= ~rows;
        }
    });
}

// beta and tau of by_sample.py: g_i = W_in^T (phi'(W_in xbar_i) * M[y_i]), M without its mean, r_ij = g_i . v_ij.
extern "C" __global__ void __launch_bounds__(128)
    pull_back(const u32* key, const u32* order, const u32* start, const u32* labels, const u32* first, const float* Z,
              const float* trigger, const u32* W, const float* scale, const float* M, float* beta, float* tau, int V,
              int L, int d, int m, int additive, int size, int in_shared) {
    extern __shared__ __align__(16) u32 memory[];
    Block block(key, order, start, labels, first, Z, trigger, W, memory, V, L, d, m, additive, size);
    if (block.first_row >= block.total) return;
    block.fetch(0);
    __syncthreads();
    const float up = scale[2 * block.trial], down = 1.f / up, errors_up = scale[2 * block.trial + 1];
    block.pool(up);
    M += (size_t)block.trial * V * m;
    beta += (size_t)block.trial * V;
    const int lane = block.lane, g = lane / 4, t = lane % 4;
    float pull[MT][D / 8][4];
#pragma unroll
    for (int tile = 0; tile < MT; tile++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) pull[tile][n][e] = 0;
    block.over_hidden([&](int h, const u32* weights) {
        float a[MT][HELD / 8][4];
        block.activate(a, weights);
        u32 error_high[MT][HELD / 16][4], error_low[MT][HELD / 16][4];
#pragma unroll
        for (int tile = 0; tile < MT; tile++)
#pragma unroll
            for (int side = 0; side < 2; side++) {
                const u32 y = block.label[block.own_row(16 * tile + g + 8 * side)];
#pragma unroll
                for (int n = 0; n < HELD / 8; n++) {
                    const int unit = h + 8 * n + 2 * t;
                    const bool live = y != ALL && unit < m;
                    const float2 error = live ? *(const float2*)(M + (size_t)y * m + unit) : make_float2(0, 0);
                    const float x = error.x * errors_up * slope(a[tile][n][2 * side] * down);
                    const float y1 = error.y * errors_up * slope(a[tile][n][2 * side + 1] * down);
                    // Sums of the first product lie in registers as factors of the second have to.
                    split(x, y1, error_high[tile][n / 2][n % 2 * 2 + side], error_low[tile][n / 2][n % 2 * 2 + side]);
                }
            }
#pragma unroll
        for (int k = 0; k < HELD / 16; k++)
#pragma unroll
            for (int n = 0; n < D / 8; n += 2) {
                u32 w_high[4], w_low[4];
                const int word = at(16 * k + lane / 8 % 2 * 8 + lane % 8, 8 * n + lane / 16 * 8);
                load_transposed(w_high, weights + word);
                load_transposed(w_low, weights + HELD * PITCH / 2 + word);
#pragma unroll
                for (int tile = 0; tile < MT; tile++)
#pragma unroll
                    for (int two = 0; two < 2; two++) {
                        float(&sum)[4] = pull[tile][n + two];
                        multiply(sum, error_low[tile][k], w_high[2 * two], w_high[2 * two + 1]);
                        multiply(sum, error_high[tile][k], w_low[2 * two], w_low[2 * two + 1]);
                        multiply(sum, error_high[tile][k], w_high[2 * two], w_high[2 * two + 1]);
                    }
            }
    });
    // rbar_i = g_i . xbar_i, while xbar is still there.
    float* mean = (float*)(block.label + ROWS);
#pragma unroll
    for (int tile = 0; tile < MT; tile++)
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const int row = block.own_row(16 * tile + g + 8 * side);
            float sum = 0;
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                float x0, x1, y0, y1;
                unpack(block.high[at(row, 8 * n + 2 * t)], x0, x1);
                unpack(block.low[at(row, 8 * n + 2 * t)], y0, y1);
                pull[tile][n][2 * side] /= errors_up;
                pull[tile][n][2 * side + 1] /= errors_up;
                sum += pull[tile][n][2 * side] * (x0 + y0) + pull[tile][n][2 * side + 1] * (x1 + y1);
            }
            sum += __shfl_xor_sync(ALL, sum, 1);
            sum += __shfl_xor_sync(ALL, sum, 2);
            if (t == 0) mean[row] = sum * down;
        }
    __syncthreads();
    // The vectors g take the place of xbar, and sums over tokens that of the weights.
    float* vectors = (float*)block.high;
    float* sums = in_shared ? (float*)block.weights : beta;
#pragma unroll
    for (int tile = 0; tile < MT; tile++)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                vectors[block.own_row(16 * tile + g + e / 2 * 8) * (D + 4) + 8 * n + 2 * t + e % 2] = pull[tile][n][e];
    if (in_shared)
        for (int v = threadIdx.x; v < V; v += blockDim.x) sums[v] = 0;
    __syncthreads();
    float on_position = 0;
    for (int r = 0; r < 16 * MT; r++) {
        const int row = block.own_row(r);
        if (block.label[row] == ALL) break;
        const u32 i = block.sample[row], position = block.stream.position(i);
        float4 own[VECTORS];
        float at_trigger = 0;
#pragma unroll
        for (int j = 0; j < VECTORS; j++) {
            own[j] = *(const float4*)(vectors + row * (D + 4) + 32 * j + 4 * (lane % 8));
            const float4 mark = additive ? block.part(block.trigger, j) : make_float4(0, 0, 0, 0);
            at_trigger += own[j].x * mark.x + own[j].y * mark.y + own[j].z * mark.z + own[j].w * mark.w;
        }
        block.tokens(i, [&](u32 token, u32 place, bool live) {
            float r_ij = place == position ? at_trigger : 0.f;
#pragma unroll
            for (int j = 0; j < VECTORS; j++) {
                const float4 z = live ? block.part(block.Z + (size_t)token * d, j) : make_float4(0, 0, 0, 0);
                r_ij += own[j].x * z.x + own[j].y * z.y + own[j].z * z.z + own[j].w * z.w;
            }
            for (int step = 1; step < 8; step *= 2) r_ij += __shfl_xor_sync(ALL, r_ij, step);
            if (live && lane % 8 == 0) {
                const float weight = r_ij - mean[row];
                atomicAdd(&sums[token], weight);
                if (place == position) on_position += weight;
            }
        });
    }
    for (int step = 8; step < 32; step *= 2) on_position += __shfl_xor_sync(ALL, on_position, step);
    if (lane == 0 && on_position != 0) atomicAdd(&tau[block.trial], on_position);
    if (!in_shared) return;
    __syncthreads();
    for (int v = threadIdx.x; v < V; v += blockDim.x)
        if (sums[v] != 0) atomicAdd(&beta[v], sums[v]);
}
