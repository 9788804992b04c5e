// The first two steps with an MLP, for NVIDIA GPUs. Four kernels: `pool` makes the pooled vectors of the samples in the
// order of their labels; `add_hidden` and `pull_back` make hidden units from them in registers and keep only what is
// summed over them; `add_pulls` goes over the tokens once more. Compiled for one dimension D (d rounded up to a multiple
// of 32), MT tiles of 16 samples to a warp, and one activation PHI.
//
// Products are of float16 pairs: x = high + low holds 22 bits, and x y = high high + high low + low high leaves out
// 2^-22 of it. Arrays are scaled by powers of two so that float16 holds them (`scale`: of pooled vectors, of errors).
// Arrays have a leading axis over trials, which is blockIdx.y.

#define WARPS 4
#define HELD 32                   // hidden units at a time
#define ROWS (WARPS * 16 * MT)    // samples to a block
#define PITCH (D + 8)             // float16 numbers from row to row: 8 rows of a matrix stand in different banks
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

// Begin to copy 16 bytes to shared memory.
__device__ __forceinline__ void copy(u32* to, const u32* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

// A block's samples and its place in shared memory.
struct Block {
    const int trial, lane, warp, first_row, m;
    u32 total;                    // samples there are
    u32 *high, *low, *weights;    // pooled vectors, and two buffers of weights, high and low
    u32* label;                   // of every row
    const u32* W;

    __device__ Block(const u32* order, const u32* start, const u32* labels, const u32* first, const u32* pooled,
                     const u32* W, u32* memory, int V, int m, int size)
        : trial(blockIdx.y), lane(threadIdx.x % 32), warp(threadIdx.x / 32), first_row(blockIdx.x * ROWS), m(m),
          total(start[(size_t)blockIdx.y * (V + 1) + V]), high(memory), low(memory + ROWS * PITCH / 2),
          weights(memory + ROWS * PITCH), label(memory + ROWS * PITCH + 2 * HELD * PITCH),
          W(W + (size_t)blockIdx.y * padded() * D) {
        if (first_row >= total) return;
        for (int row = threadIdx.x; row < ROWS; row += blockDim.x) {
            const bool live = first_row + row < total;
            const size_t own = (size_t)trial * size;
            label[row] = live ? labels[own + order[own + first_row + row] - first[trial]] : ALL;
        }
        pooled += (size_t)trial * size * D;
        for (int part = threadIdx.x; part < 2 * ROWS * D / 8; part += blockDim.x) {
            const int half = part / (ROWS * D / 8), left = part % (ROWS * D / 8);
            const int row = left / (D / 8), column = left % (D / 8) * 8;
            const u32* from = pooled + ((size_t)half * size + first_row + row) * (D / 2) + column / 2;
            copy(high + half * ROWS * PITCH / 2 + at(row, column), from);
        }
        fetch(0);
    }
    // Hidden units, rounded up to whole pieces.
    __device__ __forceinline__ int padded() const { return (m + HELD - 1) / HELD * HELD; }
    __device__ __forceinline__ int own_row(int r) const { return warp * 16 * MT + r; }

    // Begin to copy the weights of a piece of hidden units into one of the two buffers.
    __device__ __forceinline__ void fetch(int piece) const {
        u32* to = weights + piece % 2 * HELD * PITCH;
        for (int part = threadIdx.x; part < 2 * HELD * D / 8; part += blockDim.x) {
            const int half = part / (HELD * D / 8), left = part % (HELD * D / 8);
            const int row = left / (D / 8), column = left % (D / 8) * 8;
            const u32* from = W + ((size_t)half * padded() + piece * HELD + row) * (D / 2) + column / 2;
            copy(to + half * HELD * PITCH / 2 + at(row, column), from);
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
    add_hidden(const u32* order, const u32* start, const u32* labels, const u32* first, const u32* pooled, const u32* W,
               const float* scale, float* total, int V, int m, int size) {
    extern __shared__ __align__(16) u32 memory[];
    const Block block(order, start, labels, first, pooled, W, memory, V, m, size);
    if (block.first_row >= block.total) return;
    __syncthreads();
    const float down = 1.f / scale[2 * block.trial];
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
            float sum[HELD / 4];
#pragma unroll
            for (int unit = 0; unit < HELD / 4; unit++) {
                sum[unit] = 0;
#pragma unroll
                for (int tile = 0; tile < MT; tile++) {
                    if (rows >> (16 * tile + g) & 1) sum[unit] += a[tile][unit / 2][unit % 2];
                    if (rows >> (16 * tile + g + 8) & 1) sum[unit] += a[tile][unit / 2][2 + unit % 2];
                }
            }
            // Eight lanes have the rows of the same eight units. They swap halves until each has one unit of all rows.
#pragma unroll
            for (int half = HELD / 8; half; half /= 2) {
                const bool upper = g & half;
#pragma unroll
                for (int unit = 0; unit < half; unit++) {
                    const float given = upper ? sum[unit] : sum[unit + half];
                    const float own = upper ? sum[unit + half] : sum[unit];
                    sum[unit] = own + __shfl_xor_sync(ALL, given, 4 * half);
                }
            }
            const int unit = h + 8 * (g / 2) + 2 * t + g % 2;
            if (unit < m) atomicAdd(&total[(size_t)y * m + unit], sum[0]);
            left &= ~rows;
        }
    });
}

// g_i = W_in^T (phi'(W_in xbar_i) * M[y_i]), M without its mean, and rbar_i = g_i . xbar_i.
extern "C" __global__ void __launch_bounds__(128)
    pull_back(const u32* order, const u32* start, const u32* labels, const u32* first, const u32* pooled, const u32* W,
              const float* scale, const float* M, float* pulls, float* means, int V, int m, int size) {
    extern __shared__ __align__(16) u32 memory[];
    const Block block(order, start, labels, first, pooled, W, memory, V, m, size);
    if (block.first_row >= block.total) return;
    __syncthreads();
    const float down = 1.f / scale[2 * block.trial], errors_up = scale[2 * block.trial + 1];
    M += (size_t)block.trial * V * m;
    pulls += ((size_t)block.trial * size + block.first_row) * D;
    means += (size_t)block.trial * size + block.first_row;
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
                const float2 both =
                    make_float2(pull[tile][n][2 * side] / errors_up, pull[tile][n][2 * side + 1] / errors_up);
                sum += both.x * (x0 + y0) + both.y * (x1 + y1);
                *(float2*)(pulls + (size_t)row * D + 8 * n + 2 * t) = both;
            }
            sum += __shfl_xor_sync(ALL, sum, 1);
            sum += __shfl_xor_sync(ALL, sum, 2);
            if (t == 0) means[row] = sum * down;
        }
}

// xbar of every sample, in float16 pairs, times `scale`. A warp has one sample; blockIdx.z is the slice of
// columns, whose part of Z stands in shared memory where it fits.
template <int SLICE, bool SHARED>
__device__ __forceinline__ void pool(const u32* key, const u32* table, const u32* order, const u32* start,
                                     const float* Z, const float* trigger, const float* scale, unsigned short* pooled,
                                     int V, int L, int d, int additive, int size) {
    extern __shared__ __align__(16) float slice[];
    const int trial = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int column = blockIdx.z * SLICE + lane % SLICE;
    Stream stream(key, table, trial, V, L);
    const u32 total = start[(size_t)trial * (V + 1) + V];
    if (blockIdx.x * warps >= total) return;
    __shared__ u32 tokens[32][64];
    Z += (size_t)trial * V * d;
    if (SHARED) {
        stream.keep_table((u32*)(slice + V * SLICE));
        for (int part = threadIdx.x; part < V * SLICE; part += blockDim.x) {
            const int k = blockIdx.z * SLICE + part % SLICE;
            slice[part] = k < d ? Z[(size_t)(part / SLICE) * d + k] : 0.f;
        }
        __syncthreads();
    }
    const float up = scale[2 * trial];
    const float mark = additive && column < d ? trigger[(size_t)trial * d + column] : 0.f;
    const float* from = SHARED ? slice + lane % SLICE : Z + min(column, d - 1);
    const u32 pitch = SHARED ? SLICE : d;
    pooled += (size_t)trial * 2 * size * D + column;
    // A warp's lanes have 32 / SLICE tokens at a time.
    const int turn = lane / SLICE, turns = 32 / SLICE;
    for (u32 row = blockIdx.x * warps + warp; row < total; row += gridDim.x * warps) {
        const u32 i = order[(size_t)trial * size + row];
        float sum = 0;
        for (u32 begin = 0; begin < stream.half; begin += 32) {
            u32 a, b;
            const u32 counters = min(32u, stream.half - begin);
            const bool live = lane < counters;
            if (live) stream.tokens(i, begin + lane, a, b);
            const u32 paired = __popc(__ballot_sync(ALL, live && stream.paired(begin + lane)));
            if (live) tokens[warp][lane] = a * pitch;
            if (lane < paired) tokens[warp][counters + lane] = b * pitch;
            __syncwarp();
            const u32 all = counters + paired;
            u32 t = turn;
            for (; t + 7 * turns < all; t += 8 * turns) {
#pragma unroll
                for (int more = 0; more < 8; more++) sum += from[tokens[warp][t + more * turns]];
            }
            for (; t < all; t += turns) sum += from[tokens[warp][t]];
            __syncwarp();
        }
        for (int step = SLICE; step < 32; step *= 2) sum += __shfl_xor_sync(ALL, sum, step);
        const float x = column < d ? (sum + mark) / L * up : 0.f;
        const u32 high = pack(x, 0.f);
        float back, none;
        unpack(high, back, none);
        if (turn == 0) {
            pooled[(size_t)row * D] = (unsigned short)high;
            pooled[((size_t)size + row) * D] = (unsigned short)pack(x - back, 0.f);
        }
    }
}

// beta_v = sum of r_ij - rbar_i over the tokens v of all samples, r_ij = g_i . v_ij, and tau, the same over informative
// positions. A thread has one counter's two tokens; blockIdx.z is the slice of d, and what it adds is linear in it.
#define GROUP 64
template <int SLICE, bool SHARED>
__device__ __forceinline__ void add_pulls(const u32* key, const u32* table, const u32* order, const u32* start,
                                          const float* Z, const float* trigger, const float* pulls,
                                          const float* means, float* beta, float* tau, int V, int L, int d,
                                          int additive, int size) {
    extern __shared__ __align__(16) float slice[];
    __shared__ __align__(16) float pull[GROUP][SLICE];
    __shared__ float offset[GROUP], marked[GROUP];
    __shared__ u32 sample[GROUP], position[GROUP];
    const int trial = blockIdx.y, first_column = blockIdx.z * SLICE;
    const u32 total = start[(size_t)trial * (V + 1) + V];
    Stream stream(key, table, trial, V, L);
    const u32 group = max(1u, min((u32)GROUP, blockDim.x / stream.half));  // samples that keep all threads busy
    if (blockIdx.x * group >= total) return;
    const int pitch = SHARED ? SLICE + 4 : d;  // four columns at a time; tokens of different threads in different banks
    beta += (size_t)trial * V;
    Sums sums{slice + V * pitch};
    const auto add = [&](u32 token, float weight) {
        if (SHARED) sums.add(token, weight);
        else atomicAdd(&beta[token], weight);
    };
    Z += (size_t)trial * V * d;
    if (SHARED) {
        for (int part = threadIdx.x; part < V * SLICE; part += blockDim.x) {
            const int k = first_column + part % SLICE;
            slice[part / SLICE * pitch + part % SLICE] = k < d ? Z[(size_t)(part / SLICE) * d + k] : 0.f;
        }
        sums.clear(V);
        stream.keep_table((u32*)(slice + V * (pitch + 1) + 32 * HOT));
    }
    const float* from = SHARED ? slice : Z + first_column;
    const int columns = min(SLICE, d - first_column);
    float on_position = 0;
    for (u32 base = blockIdx.x * group; base < total; base += gridDim.x * group) {
        const u32 rows = min(group, total - base);
        __syncthreads();
        for (u32 part = threadIdx.x; part < rows * SLICE; part += blockDim.x)
            pull[part / SLICE][part % SLICE] =
                pulls[((size_t)trial * size + base + part / SLICE) * D + first_column + part % SLICE];
        for (u32 row = threadIdx.x; row < rows; row += blockDim.x) {
            sample[row] = order[(size_t)trial * size + base + row];
            position[row] = stream.position(sample[row]);
            offset[row] = blockIdx.z == 0 ? means[(size_t)trial * size + base + row] : 0.f;
        }
        __syncthreads();
        if (additive)
            for (u32 row = threadIdx.x; row < rows; row += blockDim.x) {
                float sum = 0;
                for (int k = 0; k < SLICE && first_column + k < d; k++)
                    sum += pull[row][k] * trigger[(size_t)trial * d + first_column + k];
                marked[row] = sum;
            }
        __syncthreads();
        for (u32 item = threadIdx.x; item < rows * stream.half; item += blockDim.x) {
            const u32 row = item / stream.half, c = item - row * stream.half;
            u32 a, b;
            stream.tokens(sample[row], c, a, b);
            const bool paired = stream.paired(c);
            const float *one = from + (size_t)a * pitch, *two = from + (size_t)(paired ? b : a) * pitch;
            float r_one = 0, r_two = 0;
            if (SHARED) {
#pragma unroll
                for (int k = 0; k < SLICE; k += 4) {
                    const float4 p = *(const float4*)&pull[row][k];
                    const float4 x = *(const float4*)(one + k), y = *(const float4*)(two + k);
                    r_one += p.x * x.x + p.y * x.y + p.z * x.z + p.w * x.w;
                    r_two += p.x * y.x + p.y * y.y + p.z * y.z + p.w * y.w;
                }
            } else {
                for (int k = 0; k < columns; k++) {
                    r_one += pull[row][k] * one[k];
                    r_two += pull[row][k] * two[k];
                }
            }
            const bool first_is = c == position[row], second_is = stream.half + c == position[row];
            const float mark = additive ? marked[row] : 0.f;
            r_one += (first_is ? mark : 0.f) - offset[row];
            add(a, r_one);
            if (first_is) on_position += r_one;
            if (!paired) continue;
            r_two += (second_is ? mark : 0.f) - offset[row];
            add(b, r_two);
            if (second_is) on_position += r_two;
        }
    }
    for (int step = 1; step < 32; step *= 2) on_position += __shfl_xor_sync(ALL, on_position, step);
    if (threadIdx.x % 32 == 0 && on_position != 0) atomicAdd(&tau[trial], on_position);
    if (!SHARED) return;
    __syncthreads();
    sums.hand_over(V, beta);
}

#define SLICED(name, SLICE, SHARED)                                                                                    \
    extern "C" __global__ void __launch_bounds__(1024) pool_##name(                                                    \
        const u32* key, const u32* table, const u32* order, const u32* start, const float* Z, const float* trigger,    \
        const float* scale, unsigned short* pooled, int V, int L, int d, int additive, int size) {                     \
        pool<SLICE, SHARED>(key, table, order, start, Z, trigger, scale, pooled, V, L, d, additive, size);             \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(1024) add_pulls_##name(                                               \
        const u32* key, const u32* table, const u32* order, const u32* start, const float* Z, const float* trigger,    \
        const float* pulls, const float* means, float* beta, float* tau, int V, int L, int d, int additive,            \
        int size) {                                                                                                    \
        add_pulls<SLICE, SHARED>(key, table, order, start, Z, trigger, pulls, means, beta, tau, V, L, d, additive,     \
                                 size);                                                                                \
    }
SLICED(32, 32, true)
SLICED(16, 16, true)
SLICED(8, 8, true)
SLICED(global, 32, false)
