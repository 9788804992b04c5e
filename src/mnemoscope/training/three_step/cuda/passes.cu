// The passes over the samples of the three steps, for NVIDIA GPUs. Tokens are drawn where they are used and never
// stored. Blocks visit samples in the order of their labels, so that a block's tables are one row of the V x V ones and
// stand in shared memory.
//
// All arrays have a leading axis over trials, which is blockIdx.y. Symbols as in by_token.py and by_winner.py.

// The label of each of the `size` samples from `first` on, and how many there are of each label.
extern "C" __global__ void draw_labels(const u32* key, const u32* permutation, const u32* first, const u32* stop,
                                       u32* label, u32* cursor, int V, int L, int size) {
    const int trial = blockIdx.y;
    const Stream stream(key, trial, V, L);
    for (int s = blockIdx.x * blockDim.x + threadIdx.x; s < size; s += gridDim.x * blockDim.x) {
        const u32 i = first[trial] + s;
        if (i < first[trial] || i >= stop[trial]) continue;  // past the end, or wrapped around
        const u32 y = permutation[(size_t)trial * V + stream.token(i, stream.position(i))];
        label[(size_t)trial * size + s] = y;
        atomicAdd(&cursor[(size_t)trial * V + y], 1u);
    }
}

// From counts to the place where each label begins, in `start` and again in `cursor`. One block a trial.
extern "C" __global__ void start_labels(u32* cursor, u32* start, int V) {
    __shared__ u32 warp_sum[32];
    cursor += (size_t)blockIdx.y * V;
    start += (size_t)blockIdx.y * (V + 1);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 before = 0;
    for (int base = 0; base < V; base += blockDim.x) {
        const int y = base + threadIdx.x;
        const u32 count = y < V ? cursor[y] : 0;
        u32 sum = count;
        for (int step = 1; step < 32; step *= 2) {
            const u32 left = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += left;
        }
        if (lane == 31) warp_sum[warp] = sum;
        __syncthreads();
        u32 offset = before, total = 0;
        for (int w = 0; w < (int)blockDim.x / 32; w++) {
            if (w < warp) offset += warp_sum[w];
            total += warp_sum[w];
        }
        if (y < V) start[y] = cursor[y] = offset + sum - count;
        before += total;
        __syncthreads();
    }
    if (threadIdx.x == 0) start[V] = before;
}

// Samples in the order of their labels. Within a label the order is whatever comes.
extern "C" __global__ void order_samples(const u32* first, const u32* stop, const u32* label, u32* cursor, u32* order,
                                         int V, int size) {
    const int trial = blockIdx.y;
    for (int s = blockIdx.x * blockDim.x + threadIdx.x; s < size; s += gridDim.x * blockDim.x) {
        const u32 i = first[trial] + s;
        if (i < first[trial] || i >= stop[trial]) continue;
        const u32 y = label[(size_t)trial * size + s];
        order[(size_t)trial * size + atomicAdd(&cursor[(size_t)trial * V + y], 1u)] = i;
    }
}

// K and n. A block has one label, `tile` tokens at a time, and one share of the label's samples.
extern "C" __global__ void count_pairs(const u32* key, const u32* order, const u32* start, int* pairs, int* labels,
                                       int V, int L, int size, int tile) {
    extern __shared__ int histogram[];
    const int trial = blockIdx.y, y = blockIdx.x;
    const Stream stream(key, trial, V, L);
    const u32 begin = start[(size_t)trial * (V + 1) + y], samples = start[(size_t)trial * (V + 1) + y + 1] - begin;
    if (samples == 0) return;
    if (threadIdx.x == 0 && blockIdx.z == 0) labels[(size_t)trial * V + y] += samples;
    const u32 share = (samples + gridDim.z - 1) / gridDim.z, from = min(samples, share * blockIdx.z);
    const u32 mine = min(samples, from + share) - from;
    order += (size_t)trial * size + begin + from;
    pairs += ((size_t)trial * V + y) * V;
    for (u32 low = 0; low < V; low += tile) {
        const u32 width = min((u32)tile, (u32)V - low);
        for (u32 v = threadIdx.x; v < width; v += blockDim.x) histogram[v] = 0;
        __syncthreads();
        for (u32 w = threadIdx.x; w < mine * stream.half; w += blockDim.x) {
            const u32 s = w / stream.half, c = w - s * stream.half;
            u32 a, b;
            stream.tokens(order[s], c, a, b);
            if (a - low < width) atomicAdd(&histogram[a - low], 1);
            if (stream.paired(c) && b - low < width) atomicAdd(&histogram[b - low], 1);
        }
        __syncthreads();
        for (u32 v = threadIdx.x; v < width; v += blockDim.x)
            if (histogram[v]) {
                if (gridDim.z == 1) pairs[low + v] += histogram[v];
                else atomicAdd(&pairs[low + v], histogram[v]);
            }
        __syncthreads();
    }
}

// The same where a label has few tokens: every token is added where it belongs. A thread has one counter.
extern "C" __global__ void count_pairs_global(const u32* key, const u32* order, const u32* start, int* pairs, int* labels,
                                              int V, int L, int size) {
    const int trial = blockIdx.y;
    const Stream stream(key, trial, V, L);
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    pairs += (size_t)trial * V * V;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, total = start[V];
    for (u32 y = thread; y < V; y += threads) labels[(size_t)trial * V + y] += start[y + 1] - start[y];
    for (size_t w = thread; w < (size_t)total * stream.half; w += threads) {
        const u32 s = w / stream.half, c = w - (size_t)s * stream.half;
        u32 y = 0, a, b;
        for (u32 step = 1u << 31 - __clz(V); step; step /= 2)  // the last label that starts at s or before
            if (y + step < V && start[y + step] <= s) y += step;
        stream.tokens(order[s], c, a, b);
        atomicAdd(&pairs[(size_t)y * V + a], 1);
        if (stream.paired(c)) atomicAdd(&pairs[(size_t)y * V + b], 1);
    }
}

// beta_v = sum of r_ij - rbar_i over the tokens v of all samples, r_ij = R[y_i, x_ij] (plus R_trig[y_i] at the informative
// position), and tau, the same over informative positions. LANES threads have one sample; rows of R and the block's own
// sums stand in shared memory where they fit. Tokens of up to PAIRS counters to a thread, which fit in 16 bits there, are
// kept from the mean to the additions; longer samples are drawn twice.
#define LANES 8
template <int PAIRS, bool SHARED>
__device__ __forceinline__ void spread(const u32* key, const u32* order, const u32* start, const float* R,
                                       const float* R_trig, float* beta, float* tau, int V, int L,
                                       int size) {
    extern __shared__ float memory[];
    const int trial = blockIdx.y, lane = threadIdx.x % LANES, group = threadIdx.x / LANES, groups = blockDim.x / LANES;
    const Stream stream(key, trial, V, L);
    const bool kept = SHARED && stream.half <= LANES * PAIRS;
    float* row = memory;
    float* sums = SHARED ? memory + V : beta + (size_t)trial * V;
    float on_position = 0;
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    if (SHARED)
        for (int v = threadIdx.x; v < V; v += blockDim.x) sums[v] = 0;
    for (int y = blockIdx.x; y < V; y += gridDim.x) {
        const u32 begin = start[y], end = start[y + 1];
        if (begin == end) continue;
        const float* r = R + ((size_t)trial * V + y) * V;
        if (SHARED) {
            __syncthreads();
            for (int v = threadIdx.x; v < V; v += blockDim.x) row[v] = r[v];
            __syncthreads();
            r = row;
        }
        // All threads of a warp go round equally often: they exchange sums.
        for (u32 base = begin; base < end; base += groups) {
            const bool live = base + group < end;
            const u32 i = live ? order[base + group] : 0;
            float sum = 0;
            u32 tokens[PAIRS], a, b;
            if (live && kept) {
#pragma unroll
                for (int k = 0; k < PAIRS; k++) {
                    const u32 c = LANES * k + lane;
                    if (c >= stream.half) break;
                    stream.tokens(i, c, a, b);
                    tokens[k] = a | b << 16;
                    sum += r[a];
                    if (stream.paired(c)) sum += r[b];
                }
            } else if (live) {
                for (u32 c = lane; c < stream.half; c += LANES) {
                    stream.tokens(i, c, a, b);
                    sum += r[a];
                    if (stream.paired(c)) sum += r[b];
                }
            }
            for (int step = LANES / 2; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
            const float mark = R_trig[(size_t)trial * V + y], mean = (sum + mark) / L;
            const u32 position = live ? stream.position(i) : 0;
            const auto add = [&](u32 token, u32 place) {
                const float weight = r[token] - mean + (place == position ? mark : 0.f);
                atomicAdd(&sums[token], weight);
                if (place == position) on_position += weight;
            };
            if (live && kept) {
#pragma unroll
                for (int k = 0; k < PAIRS; k++) {
                    const u32 c = LANES * k + lane;
                    if (c >= stream.half) break;
                    add(tokens[k] & 0xFFFFu, c);
                    if (stream.paired(c)) add(tokens[k] >> 16, stream.half + c);
                }
            } else if (live) {
                for (u32 c = lane; c < stream.half; c += LANES) {
                    stream.tokens(i, c, a, b);
                    add(a, c);
                    if (stream.paired(c)) add(b, stream.half + c);
                }
            }
        }
    }
    for (int step = 1; step < 32; step *= 2) on_position += __shfl_xor_sync(~0u, on_position, step);
    if (threadIdx.x % 32 == 0 && on_position != 0) atomicAdd(&tau[trial], on_position);
    if (!SHARED) return;
    __syncthreads();
    for (int v = threadIdx.x; v < V; v += blockDim.x)
        if (sums[v] != 0) atomicAdd(&beta[(size_t)trial * V + v], sums[v]);
}

#define SPREAD(name, PAIRS, SHARED)                                                                                  \
    extern "C" __global__ void __launch_bounds__(512)                                                                \
        name(const u32* key, const u32* order, const u32* start, const float* R, const float* R_trig, float* beta,   \
             float* tau, int V, int L, int size) {                                                                   \
        spread<PAIRS, SHARED>(key, order, start, R, R_trig, beta, tau, V, L, size);                                  \
    }
SPREAD(spread_3, 3, true)
SPREAD(spread_5, 5, true)
SPREAD(spread_9, 9, true)
SPREAD(spread_17, 17, true)
SPREAD(spread_33, 33, true)
SPREAD(spread_global, 1, false)

// Where attention rests, counted: K and n of by_winner.py, by the rule of `hard_attention`. A thread has one sample;
// the token of rank r is by_rank[r].
extern "C" __global__ void __launch_bounds__(512)
    count_winners(const u32* key, const u32* permutation, const int* rank, const u32* by_rank, const float* score,
                  const float* trigger, const u32* first, const u32* stop, int* noise, int* informative, int V, int L,
                  int locked, int in_shared) {
    extern __shared__ int table[];
    const int trial = blockIdx.y;
    const Stream stream(key, trial, V, L);
    rank += (size_t)trial * V;
    score += (size_t)trial * V;
    by_rank += (size_t)trial * V;
    if (in_shared) {
        for (int v = threadIdx.x; v < V; v += blockDim.x) table[v] = rank[v];
        __syncthreads();
        rank = table;
    }
    const u32 samples = stop[trial] - first[trial];
    for (u32 s = blockIdx.x * blockDim.x + threadIdx.x; s < samples; s += gridDim.x * blockDim.x) {
        const u32 i = first[trial] + s, position = stream.position(i);
        int best = -1;
        u32 own = 0;
        for (u32 c = 0; c < stream.half; c++) {
            u32 a, b;
            stream.tokens(i, c, a, b);
            if (c == position) own = a;
            else best = max(best, rank[a]);
            if (!stream.paired(c)) continue;
            if (stream.half + c == position) own = b;
            else best = max(best, rank[b]);
        }
        const u32 y = permutation[(size_t)trial * V + own];
        const u32 rival = best < 0 ? 0 : by_rank[best];
        // Two scores that are equal but for rounding are a unit apart at most.
        if (locked || best < 0 || score[own] + trigger[trial] - score[rival] >= -1)
            atomicAdd(&informative[(size_t)trial * V + y], 1);
        else
            atomicAdd(&noise[((size_t)trial * V + y) * V + rival], 1);
    }
}
