// The passes over the samples of the three steps, for NVIDIA GPUs. Tokens are drawn where they are used and never
// stored. Blocks visit samples in the order of their labels, so that a block's tables are one row of the V x V ones and
// stand in shared memory. Where all tokens are alike a block has a label; where they are not (-DUNEVEN), a few labels
// have most of the samples, and a block has a range of them.
//
// All arrays have a leading axis over trials, which is blockIdx.y. Symbols as in by_token.py and by_winner.py.

// Add 1 to a label's count, and return what it was. Lanes of one label add together: additions to one address wait for
// each other, and with -DUNEVEN many samples have the same label.
__device__ __forceinline__ u32 take_place(u32* counts, u32 y) {
#ifdef UNEVEN
    const u32 lanes = __match_any_sync(__activemask(), y), lane = threadIdx.x & 31, first = __ffs(lanes) - 1;
    u32 before = 0;
    if (lane == first) before = atomicAdd(&counts[y], __popc(lanes));
    return __shfl_sync(lanes, before, first) + __popc(lanes & ((1u << lane) - 1));
#else
    return atomicAdd(&counts[y], 1u);
#endif
}

// The label of each of the `size` samples from `first` on, and how many there are of each label.
extern "C" __global__ void draw_labels(const u32* key, const u32* table, const u32* permutation, const u32* first,
                                       const u32* stop, u32* label, u32* cursor, int V, int L, int size) {
    const int trial = blockIdx.y;
    const Stream stream(key, table, trial, V, L);
    for (int s = blockIdx.x * blockDim.x + threadIdx.x; s < size; s += gridDim.x * blockDim.x) {
        const u32 i = first[trial] + s;
        if (i < first[trial] || i >= stop[trial]) continue;  // past the end, or wrapped around
        const u32 y = permutation[(size_t)trial * V + stream.token(i, stream.position(i))];
        label[(size_t)trial * size + s] = y;
        take_place(cursor + (size_t)trial * V, y);
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
        order[(size_t)trial * size + take_place(cursor + (size_t)trial * V, y)] = i;
    }
}

// Add the tokens of samples order[0..samples-1], which have one label, to the label's row of K, `tile` tokens at a time.
__device__ __forceinline__ void count_row(const Stream& stream, const u32* order, u32 samples, int* row, int* histogram,
                                          int tile, bool alone) {
    for (u32 low = 0; low < stream.V; low += tile) {
        const u32 width = min((u32)tile, stream.V - low);
        for (u32 v = threadIdx.x; v < width; v += blockDim.x) histogram[v] = 0;
        __syncthreads();
        for (u32 w = threadIdx.x; w < samples * stream.half; w += blockDim.x) {
            const u32 s = w / stream.half, c = w - s * stream.half;
            u32 a, b;
            stream.tokens(order[s], c, a, b);
            if (a - low < width) atomicAdd(&histogram[a - low], 1);
            if (stream.paired(c) && b - low < width) atomicAdd(&histogram[b - low], 1);
        }
        __syncthreads();
        for (u32 v = threadIdx.x; v < width; v += blockDim.x)
            if (histogram[v]) {
                if (alone) row[low + v] += histogram[v];
                else atomicAdd(&row[low + v], histogram[v]);
            }
        __syncthreads();
    }
}

// Add what a thread has of a sample's tokens to K where they belong.
__device__ __forceinline__ void count_counter(const Stream& stream, u32 i, u32 c, int* row) {
    u32 a, b;
    stream.tokens(i, c, a, b);
    atomicAdd(&row[a], 1);
    if (stream.paired(c)) atomicAdd(&row[b], 1);
}

// What one sample adds to beta and tau, by LANES threads; `live` is the same for all of them. r is its label's row of R.
// Tokens of up to PAIRS counters to a thread, which fit in 16 bits there, are kept from the mean to the additions; longer
// samples are drawn twice.
#define LANES 8
template <int PAIRS, class S>
__device__ __forceinline__ void spread_sample(const Stream& stream, u32 i, bool live, const float* r, float mark,
                                              S& sums, float& on_position) {
    const int lane = threadIdx.x % LANES;
    const bool kept = stream.V <= 65536 && stream.half <= LANES * PAIRS;
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
    const float mean = (sum + mark) / stream.L;
    const u32 position = live ? stream.position(i) : 0;
    const auto add = [&](u32 token, u32 place) {
        const float weight = r[token] - mean + (place == position ? mark : 0.f);
        sums.add(token, weight);
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

// Add what all threads of a block have at the informative position.
__device__ __forceinline__ void add_up(float on_position, float* tau) {
    for (int step = 1; step < 32; step *= 2) on_position += __shfl_xor_sync(~0u, on_position, step);
    if (threadIdx.x % 32 == 0 && on_position != 0) atomicAdd(tau, on_position);
}

#ifndef UNEVEN

// K and n. A block has one label and one share of the label's samples.
extern "C" __global__ void count_pairs(const u32* key, const u32* table, const u32* order, const u32* start, int* pairs,
                                       int* labels, int V, int L, int size, int tile) {
    extern __shared__ int histogram[];
    const int trial = blockIdx.y, y = blockIdx.x;
    const Stream stream(key, table, trial, V, L);
    const u32 begin = start[(size_t)trial * (V + 1) + y], samples = start[(size_t)trial * (V + 1) + y + 1] - begin;
    if (samples == 0) return;
    if (threadIdx.x == 0 && blockIdx.z == 0) labels[(size_t)trial * V + y] += samples;
    const u32 share = (samples + gridDim.z - 1) / gridDim.z, from = min(samples, share * blockIdx.z);
    const u32 mine = min(samples, from + share) - from;
    order += (size_t)trial * size + begin + from;
    count_row(stream, order, mine, pairs + ((size_t)trial * V + y) * V, histogram, tile, gridDim.z == 1);
}

// The same where a label has few tokens: every token is added where it belongs. A thread has one counter.
extern "C" __global__ void count_pairs_global(const u32* key, const u32* table, const u32* order, const u32* start,
                                              int* pairs, int* labels, int V, int L, int size) {
    const int trial = blockIdx.y;
    const Stream stream(key, table, trial, V, L);
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    pairs += (size_t)trial * V * V;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, total = start[V];
    for (u32 y = thread; y < V; y += threads) labels[(size_t)trial * V + y] += start[y + 1] - start[y];
    for (size_t w = thread; w < (size_t)total * stream.half; w += threads) {
        const u32 s = w / stream.half, c = w - (size_t)s * stream.half;
        u32 y = 0;
        for (u32 step = 1u << 31 - __clz(V); step; step /= 2)  // the last label that starts at s or before
            if (y + step < V && start[y + step] <= s) y += step;
        count_counter(stream, order[s], c, pairs + (size_t)y * V);
    }
}

// beta_v = sum of r_ij - rbar_i over the tokens v of all samples, r_ij = R[y_i, x_ij] (plus R_trig[y_i] at the informative
// position), and tau, the same over informative positions. A row of R and the block's own sums stand in shared memory.
template <int PAIRS>
__device__ __forceinline__ void spread(const u32* key, const u32* table, const u32* order, const u32* start,
                                       const float* R, const float* R_trig, float* beta, float* tau, int V, int L,
                                       int size) {
    extern __shared__ float memory[];
    const int trial = blockIdx.y, group = threadIdx.x / LANES, groups = blockDim.x / LANES;
    const Stream stream(key, table, trial, V, L);
    float* row = memory;
    Sums sums{memory + V};
    float on_position = 0;
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    sums.clear(V);
    for (int y = blockIdx.x; y < V; y += gridDim.x) {
        const u32 begin = start[y], end = start[y + 1];
        if (begin == end) continue;
        __syncthreads();
        for (int v = threadIdx.x; v < V; v += blockDim.x) row[v] = R[((size_t)trial * V + y) * V + v];
        __syncthreads();
        // All threads of a warp go round equally often: they exchange sums.
        for (u32 base = begin; base < end; base += groups) {
            const bool live = base + group < end;
            const u32 i = live ? order[base + group] : 0;
            spread_sample<PAIRS>(stream, i, live, row, R_trig[(size_t)trial * V + y], sums, on_position);
        }
    }
    add_up(on_position, &tau[trial]);
    __syncthreads();
    sums.hand_over(V, beta + (size_t)trial * V);
}

#define SPREAD(name, PAIRS)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, PAIRS <= 5 ? 8 : 4)                                            \
        name(const u32* key, const u32* table, const u32* order, const u32* start, const float* R,                   \
             const float* R_trig, float* beta, float* tau, int V, int L, int size) {                                 \
        spread<PAIRS>(key, table, order, start, R, R_trig, beta, tau, V, L, size);                                   \
    }
SPREAD(spread_3, 3)
SPREAD(spread_5, 5)
SPREAD(spread_9, 9)
SPREAD(spread_17, 17)
SPREAD(spread_33, 33)

// The same where a label has few tokens, or shared memory has no room.
extern "C" __global__ void __launch_bounds__(256)
    spread_global(const u32* key, const u32* table, const u32* order, const u32* start, const float* R,
                  const float* R_trig, float* beta, float* tau, int V, int L, int size) {
    const int trial = blockIdx.y, group = threadIdx.x / LANES, groups = blockDim.x / LANES;
    const Stream stream(key, table, trial, V, L);
    GlobalSums sums{beta + (size_t)trial * V};
    float on_position = 0;
    start += (size_t)trial * (V + 1);
    for (int y = blockIdx.x; y < V; y += gridDim.x) {
        const float* r = R + ((size_t)trial * V + y) * V;
        for (u32 base = start[y]; base < start[y + 1]; base += groups) {
            const bool live = base + group < start[y + 1];
            const u32 i = live ? order[(size_t)trial * size + base + group] : 0;
            spread_sample<1>(stream, i, live, r, R_trig[(size_t)trial * V + y], sums, on_position);
        }
    }
    add_up(on_position, &tau[trial]);
}

#else

// A block's range of the ordered samples, in runs: of one label that has many of them, or of several that have few each.
struct Runs {
    const u32 *start, V, few;
    u32 y, begin, end, to;
    bool many;  // whether the run is of label y alone

    // A label has few samples in a range if they are at most `few`.
    __device__ Runs(const u32* start, int V, u32 few) : start(start), V(V), few(few), y(0), many(false) {
        const u32 total = start[V], share = (total + gridDim.x - 1) / gridDim.x;
        end = min(total, share * blockIdx.x);
        to = min(total, end + share);
        for (u32 step = 1u << 31 - __clz(V); step; step /= 2)  // the last label that starts at `end` or before
            if (y + step < V && start[y + step] <= end) y += step;
    }
    __device__ __forceinline__ bool next() {
        begin = end;
        if (begin >= to) return false;
        while (start[y + 1] <= begin) y++;
        end = min(to, start[y + 1]);
        many = end - begin > few;
        while (!many && end < to && min(to, start[y + 2]) - end <= few) end = min(to, start[++y + 1]);
        return true;
    }
};

// K and n.
extern "C" __global__ void count_ranges(const u32* key, const u32* table, const u32* order, const u32* start,
                                        const u32* label, const u32* first, int* pairs, int* labels, int V, int L,
                                        int size, int tile, int in_shared) {
    extern __shared__ int histogram[];
    const int trial = blockIdx.y;
    Stream stream(key, table, trial, V, L);
    if (in_shared) stream.keep_table((u32*)(histogram + tile));
    __syncthreads();
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    label += (size_t)trial * size;
    pairs += (size_t)trial * V * V;
    const u32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (u32 y = thread; y < V; y += threads) labels[(size_t)trial * V + y] += start[y + 1] - start[y];
    Runs runs(start, V, V / L);
    while (runs.next()) {
        const u32 samples = runs.end - runs.begin;
        if (runs.many) {
            count_row(stream, order + runs.begin, samples, pairs + (size_t)runs.y * V, histogram, tile, false);
            continue;
        }
        for (u32 w = threadIdx.x; w < samples * stream.half; w += blockDim.x) {
            const u32 s = w / stream.half, c = w - s * stream.half, i = order[runs.begin + s];
            count_counter(stream, i, c, pairs + (size_t)label[i - first[trial]] * V);
        }
    }
}

// beta and tau, as `spread` has them, but rows of labels that have at most `few` samples stay where they are.
template <int PAIRS>
__device__ __forceinline__ void spread_ranges(const u32* key, const u32* table, const u32* order, const u32* start,
                                              const u32* label, const u32* first, const float* R, const float* R_trig,
                                              float* beta, float* tau, int V, int L, int size, int few) {
    extern __shared__ float memory[];
    const int trial = blockIdx.y, group = threadIdx.x / LANES, groups = blockDim.x / LANES;
    Stream stream(key, table, trial, V, L);
    float* row = memory;
    stream.keep_table((u32*)(memory + V));
    Sums sums{memory + 2 * V};
    sums.clear(V);
    __syncthreads();
    float on_position = 0;
    start += (size_t)trial * (V + 1);
    order += (size_t)trial * size;
    label += (size_t)trial * size;
    R += (size_t)trial * V * V;
    R_trig += (size_t)trial * V;
    Runs runs(start, V, few);
    while (runs.next()) {
        if (runs.many) {
            __syncthreads();
            for (int v = threadIdx.x; v < V; v += blockDim.x) row[v] = R[(size_t)runs.y * V + v];
            __syncthreads();
        }
        for (u32 base = runs.begin; base < runs.end; base += groups) {
            const bool live = base + group < runs.end;
            const u32 i = live ? order[base + group] : 0, y = runs.many ? runs.y : live ? label[i - first[trial]] : 0;
            const float* r = runs.many ? row : R + (size_t)y * V;
            spread_sample<PAIRS>(stream, i, live, r, R_trig[y], sums, on_position);
        }
    }
    add_up(on_position, &tau[trial]);
    __syncthreads();
    sums.hand_over(V, beta + (size_t)trial * V);
}

#define SPREAD(name, PAIRS)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, PAIRS <= 5 ? 8 : 4)                                            \
        name(const u32* key, const u32* table, const u32* order, const u32* start, const u32* label,                 \
             const u32* first, const float* R, const float* R_trig, float* beta, float* tau, int V, int L, int size, \
             int few) {                                                                                              \
        spread_ranges<PAIRS>(key, table, order, start, label, first, R, R_trig, beta, tau, V, L, size, few);         \
    }
SPREAD(spread_ranges_3, 3)
SPREAD(spread_ranges_5, 5)
SPREAD(spread_ranges_9, 9)
SPREAD(spread_ranges_17, 17)
SPREAD(spread_ranges_33, 33)

// The same where shared memory has no room.
extern "C" __global__ void __launch_bounds__(256)
    spread_ranges_global(const u32* key, const u32* table, const u32* order, const u32* start, const u32* label,
                         const u32* first, const float* R, const float* R_trig, float* beta, float* tau, int V, int L,
                         int size, int few) {
    const int trial = blockIdx.y, group = threadIdx.x / LANES, groups = blockDim.x / LANES;
    const Stream stream(key, table, trial, V, L);
    GlobalSums sums{beta + (size_t)trial * V};
    float on_position = 0;
    order += (size_t)trial * size;
    const u32 total = start[(size_t)trial * (V + 1) + V];
    for (u32 base = blockIdx.x * groups; base < total; base += gridDim.x * groups) {
        const bool live = base + group < total;
        const u32 i = live ? order[base + group] : 0, y = live ? label[(size_t)trial * size + i - first[trial]] : 0;
        const float* r = R + ((size_t)trial * V + y) * V;
        spread_sample<1>(stream, i, live, r, R_trig[(size_t)trial * V + y], sums, on_position);
    }
    add_up(on_position, &tau[trial]);
}

#endif

// Where attention rests, counted: K and n of by_winner.py, by the rule of `hard_attention`. A thread has one sample;
// the token of rank r is by_rank[r].
extern "C" __global__ void __launch_bounds__(512)
    count_winners(const u32* key, const u32* table, const u32* permutation, const int* rank, const u32* by_rank,
                  const float* score, const float* trigger, const u32* first, const u32* stop, int* noise,
                  int* informative, int V, int L, int locked, int in_shared) {
    extern __shared__ int ranks[];
    const int trial = blockIdx.y;
    Stream stream(key, table, trial, V, L);
    rank += (size_t)trial * V;
    score += (size_t)trial * V;
    by_rank += (size_t)trial * V;
    if (in_shared) {
        for (int v = threadIdx.x; v < V; v += blockDim.x) ranks[v] = rank[v];
        stream.keep_table((u32*)(ranks + V));
        __syncthreads();
        rank = ranks;
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
