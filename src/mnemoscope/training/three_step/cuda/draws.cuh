// What the kernels share: the samples' random streams. Put before the source of each module.

typedef unsigned int u32;

// Threefry-2x32-20 of the counter (x0, x1): engine/random.py in CUDA, equal to the bit.
__device__ __forceinline__ void threefry(u32 k0, u32 k1, u32 x0, u32 x1, u32& a, u32& b) {
    const u32 k2 = k0 ^ k1 ^ 0x1BD11BDAu;
    x0 += k0;
    x1 += k1;
#define ROUND(r) x0 += x1; x1 = __funnelshift_l(x1, x1, r) ^ x0;
#define FOUR(p, q, r, s, inject0, inject1) ROUND(p) ROUND(q) ROUND(r) ROUND(s) x0 += inject0; x1 += inject1;
    FOUR(13, 15, 26, 6, k1, k2 + 1u)
    FOUR(17, 29, 16, 24, k2, k0 + 2u)
    FOUR(13, 15, 26, 6, k0, k1 + 3u)
    FOUR(17, 29, 16, 24, k1, k2 + 4u)
    FOUR(13, 15, 26, 6, k2, k0 + 5u)
    a = x0;
    b = x1;
}

// The token that a random word names. With -DUNEVEN tokens have unequal probabilities, and `table` is the alias table of
// tasks/alias.py: the bucket's threshold in the upper bits of an entry, its other token in the lower ones.
__device__ __forceinline__ u32 token_of(u32 word, u32 V, const u32* table) {
    const u32 bucket = __umulhi(word, V);
#ifdef UNEVEN
    const u32 entry = table[bucket], mask = (1u << (32 - __clz(V - 1))) - 1u;
    return ((word * V) | mask) < entry ? bucket : entry & mask;
#else
    return bucket;
#endif
}

// Counter (i, c) of a stream gives the words c and half + c of sample i, which has L tokens and a position.
struct Stream {
    u32 k0, k1, V, L, half;
    const u32* table;
    __device__ Stream(const u32* key, const u32* table, int trial, int V, int L)
        : k0(key[2 * trial]), k1(key[2 * trial + 1]), V(V), L(L), half((L + 2) / 2), table(table + (size_t)trial * V) {}
    __device__ __forceinline__ void tokens(u32 i, u32 c, u32& first, u32& second) const {
        u32 a, b;
        threefry(k0, k1, i, c, a, b);
        first = token_of(a, V, table);
        second = token_of(b, V, table);
    }
    // Whether word half + c is a token; if not it is the position's, or one too many.
    __device__ __forceinline__ bool paired(u32 c) const { return half + c < L; }
    __device__ __forceinline__ u32 position(u32 i) const {
        u32 a, b;
        threefry(k0, k1, i, L - half, a, b);
        return __umulhi(b, L);
    }
    __device__ __forceinline__ u32 token(u32 i, u32 j) const {
        u32 a, b;
        tokens(i, j < half ? j : j - half, a, b);
        return j < half ? a : b;
    }
    // Keep the alias table in shared memory, where its entries are read far faster. All threads of a block take part,
    // and wait for each other before they draw.
    __device__ __forceinline__ void keep_table(u32* memory) {
#ifdef UNEVEN
        for (u32 v = threadIdx.x; v < V; v += blockDim.x) memory[v] = table[v];
        table = memory;
#endif
    }
};

// A block's float sums by token in shared memory. Additions to one address wait for each other, so with -DUNEVEN the
// first HOT tokens have a sum for every lane of a warp: under zipf these are the most frequent ones. (Elsewhere the
// results are the same, and come later.)
#ifdef UNEVEN
#define HOT 32
#else
#define HOT 0
#endif
struct Sums {
    float* memory;
    __device__ __forceinline__ void clear(int V) {
        for (int v = threadIdx.x; v < V + 32 * HOT; v += blockDim.x) memory[v] = 0;
    }
    __device__ __forceinline__ void add(u32 token, float weight) {
        atomicAdd(&memory[token < HOT ? 32 * token + threadIdx.x % 32 : 32 * HOT + token], weight);
    }
    // Add them to `total`, once all threads have added theirs.
    __device__ __forceinline__ void hand_over(int V, float* total) {
        for (int v = threadIdx.x; v < V; v += blockDim.x) {
            float sum = memory[32 * HOT + v];
            if (v < HOT)
                for (int lane = 0; lane < 32; lane++) sum += memory[32 * v + (lane + threadIdx.x) % 32];
            if (sum != 0) atomicAdd(&total[v], sum);
        }
    }
};
// The same where there is no room for them.
struct GlobalSums {
    float* total;
    __device__ __forceinline__ void add(u32 token, float weight) { atomicAdd(&total[token], weight); }
};
