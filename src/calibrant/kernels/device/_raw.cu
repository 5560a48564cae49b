// Fused kernels: one read of the scores and labels. Compiled at run time with
//   Score, Label  the element types
//   LINEAR        1 where keys are equal steps in the score, 0 where in its bits
//   THREADS       of a block, BLOCKS of a multiprocessor, ROWS of a thread at a time (a multiple of 4)
// A block keeps the table of keys, the cuts and its histograms in shared memory. Lane i of a warp adds to copy i of the
// histogram, so equal scores do not wait for each other within a warp. A counter holds rows in its low half and
// positives in its high half, and is emptied into the result before either can overflow.

template <typename T> struct __align__(sizeof(T) * 4 > 16 ? 16 : sizeof(T) * 4) Four { T value[4]; };

struct Settings {  // followed in memory by the cuts and, at a multiple of 8 bytes, the table of keys
    long long score_stride, label_stride, rows, vector_rows;
    int n_cuts, last_key, shift, offset, copies;
    float low, scale;
};

// CuPy compiles with numbers below the smallest normal float32 taken for zero. In PTX an operation says so itself, and
// these do not.
__device__ __forceinline__ float narrow(float x) { return x; }
__device__ __forceinline__ float narrow(double x) { float y; asm("cvt.rn.f32.f64 %0, %1;" : "=f"(y) : "d"(x)); return y; }
__device__ __forceinline__ float add(float x, float y) { asm("add.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y)); return x; }
__device__ __forceinline__ float subtract(float x, float y) { asm("sub.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y)); return x; }
__device__ __forceinline__ float multiply(float x, float y) { asm("mul.rn.f32 %0, %0, %1;" : "+f"(x) : "f"(y)); return x; }
__device__ __forceinline__ bool below(double x, double y) { return x < y; }
__device__ __forceinline__ bool below(float x, float y) {
    int result;
    asm("{.reg .pred p; setp.lt.f32 p, %1, %2; selp.s32 %0, 1, 0, p;}" : "=r"(result) : "f"(x), "f"(y));
    return result;
}

__device__ __forceinline__ int key_of(Score score, const Settings& keys) {
#if LINEAR
    float steps = multiply(subtract(narrow(score), keys.low), keys.scale);
    return (int)fminf(fmaxf(steps, 0.0f), (float)keys.last_key);  // NaN becomes 0
#else
    int bits = __float_as_int(add(narrow(score), 0.0f));  // negative zero becomes zero
    bits ^= (bits >> 31) & 0x7fffffff;
    return min(max((bits >> keys.shift) - keys.offset, 0), keys.last_key);
#endif
}

__device__ __forceinline__ int cell_of(Score score, unsigned entry, const Score* cuts) {
    int first = entry & 0xffff, end = first + (entry >> 16);
    while (first < end) {
        int middle = (first + end) >> 1;
        if (below(score, cuts[middle])) end = middle; else first = middle + 1;
    }
    return first;
}

// The cuts and the table of keys, copied to shared memory; returns the table.
__device__ __forceinline__ unsigned* load(const Settings* settings, Score* cuts) {
    const int n_cuts = settings->n_cuts, words = (n_cuts * (int)sizeof(Score) + 7) / 8 * 2 + settings->last_key + 1;
    const unsigned* source = (const unsigned*)(settings + 1);
    for (int i = threadIdx.x; i < words; i += THREADS) ((unsigned*)cuts)[i] = source[i];
    return (unsigned*)cuts + (words - settings->last_key - 1);
}

__device__ __forceinline__ bool good(Score score, Label label) {
    return fabs(score) < (Score)__int_as_float(0x7f800000) && (label == (Label)0 || label == (Label)1);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) tally(
    const Score* __restrict__ scores, const Label* __restrict__ labels, const Settings* __restrict__ settings,
    unsigned long long* result) {
    extern __shared__ double shared[];
    Score* cuts = (Score*)shared;
    const Settings keys = *settings;
    unsigned* entries = load(settings, cuts);
    unsigned* counts = entries + keys.last_key + 1;
    const int size = keys.n_cuts + 1, copies = keys.copies, lane = threadIdx.x & (copies - 1);
    const long long rows = keys.rows, score_stride = keys.score_stride, label_stride = keys.label_stride;
    for (int i = threadIdx.x; i < size * copies; i += THREADS) counts[i] = 0;
    __syncthreads();

    // The rows of a step that one counter can get, in the worst case all of its lanes' in all warps.
    const int most_steps = 0xffff / (ROWS * (THREADS / copies));
    const long long step_rows = (long long)THREADS * ROWS;
    const long long steps = (rows + step_rows - 1) / step_rows;
    unsigned bad = 0;
    int since = 0;
    for (long long step = blockIdx.x; step < steps; step += gridDim.x) {
        const long long base = step * step_rows;
        Score x[ROWS];
        Label y[ROWS];
        unsigned entry[ROWS];
        if (base + step_rows <= keys.vector_rows) {
            const Four<Score>* score_fours = (const Four<Score>*)(scores + base);
            const Four<Label>* label_fours = (const Four<Label>*)(labels + base);
#pragma unroll
            for (int j = 0; j < ROWS / 4; ++j) {
                *(Four<Score>*)&x[4 * j] = score_fours[j * THREADS + threadIdx.x];
                *(Four<Label>*)&y[4 * j] = label_fours[j * THREADS + threadIdx.x];
            }
#pragma unroll
            for (int j = 0; j < ROWS; ++j) entry[j] = entries[key_of(x[j], keys)];
#pragma unroll
            for (int j = 0; j < ROWS; ++j) {
                int cell = cell_of(x[j], entry[j], cuts);
                bad += !good(x[j], y[j]);
                atomicAdd(&counts[cell * copies + lane], y[j] == (Label)1 ? 0x10001u : 1u);
            }
        } else {
            for (int j = 0; j < ROWS; ++j) {
                const long long row = base + j * THREADS + threadIdx.x;
                if (row >= rows) break;
                const Score score = scores[row * score_stride];
                const Label label = labels[row * label_stride];
                int cell = cell_of(score, entries[key_of(score, keys)], cuts);
                bad += !good(score, label);
                atomicAdd(&counts[cell * copies + lane], label == (Label)1 ? 0x10001u : 1u);
            }
        }
        if (++since == most_steps || step + gridDim.x >= steps) {
            since = 0;
            __syncthreads();
            for (int cell = threadIdx.x; cell < size; cell += THREADS) {
                unsigned seen = 0, positive = 0;
                for (int copy = 0; copy < copies; ++copy) {
                    const int place = cell * copies + ((copy + threadIdx.x) & (copies - 1));
                    seen += counts[place] & 0xffff;
                    positive += counts[place] >> 16;
                    counts[place] = 0;
                }
                if (seen) atomicAdd(&result[cell], (unsigned long long)seen);
                if (positive) atomicAdd(&result[size + cell], (unsigned long long)positive);
            }
            __syncthreads();
        }
    }
    if (bad) atomicAdd(&result[2 * size], (unsigned long long)bad);
}

extern "C" __global__ void __launch_bounds__(THREADS) look_up(
    const Score* __restrict__ scores, const Settings* __restrict__ settings, const double* __restrict__ table,
    double* __restrict__ out) {
    extern __shared__ double shared[];
    double* values = shared;
    const Settings keys = *settings;
    Score* cuts = (Score*)(values + keys.n_cuts + 1);
    unsigned* entries = load(settings, cuts);
    for (int i = threadIdx.x; i <= keys.n_cuts; i += THREADS) values[i] = table[i];
    __syncthreads();
    const long long all = (long long)gridDim.x * THREADS;
#pragma unroll 4
    for (long long row = (long long)blockIdx.x * THREADS + threadIdx.x; row < keys.rows; row += all) {
        const Score score = scores[row * keys.score_stride];
        out[row] = values[cell_of(score, entries[key_of(score, keys)], cuts)];
    }
}
