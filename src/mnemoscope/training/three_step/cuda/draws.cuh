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

// Counter (i, c) of a stream gives the words c and half + c of sample i, which has L tokens and a position.
struct Stream {
    u32 k0, k1, V, L, half;
    __device__ Stream(const u32* key, int trial, int V, int L)
        : k0(key[2 * trial]), k1(key[2 * trial + 1]), V(V), L(L), half((L + 2) / 2) {}
    __device__ __forceinline__ void tokens(u32 i, u32 c, u32& first, u32& second) const {
        u32 a, b;
        threefry(k0, k1, i, c, a, b);
        first = __umulhi(a, V);
        second = __umulhi(b, V);
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
};
