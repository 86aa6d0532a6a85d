/* Matrix products on the tile unit of x86-64 processors that have one (AMX, bfloat16).
 *
 * A bfloat16 number holds 8 bits, so an integer of up to 8 bits is one, an integer of up to 16 bits the exact sum of two, and a float32 the
 * exact sum of three. A product of such sums is the sum of the products of their pieces, gathered in float32. With the pieces numbered by
 * falling size, products i + j < order are formed: order 3 leaves out what is below 2^-24 of the whole, so floats multiply as in float32
 * and integers of 16 bits exactly; order 2, with floats as two pieces, leaves 17 bits at half the cost.
 *
 * Operands are packed into tiles of 1 KiB: [tile of 16][k tile of 32][piece], zero-padded. The left operand holds rows with k innermost,
 * the right one holds columns with pairs of k innermost, as the instruction reads them. */
#ifndef GENAI_CPU_AMX_H
#define GENAI_CPU_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AMX_SIDE = 16, AMX_DEPTH = 32, AMX_PIECES = 3, AMX_TILE_BYTES = 1024 };

/* Whether this processor and operating system have tiles; asks the kernel for the permission to use them. */
bool amx_available(void);

static inline size_t amx_tiles(size_t extent, size_t step) {
  return (extent + step - 1) / step;
}

/* Bytes of a packed operand of `extent` rows or columns, rounded up to pairs of tiles (the product reads pairs). */
static inline size_t amx_packed_bytes(size_t extent, size_t k, size_t pieces) {
  return amx_tiles(extent, 2 * AMX_SIDE) * 2 * amx_tiles(k, AMX_DEPTH) * pieces * AMX_TILE_BYTES;
}

/* A matrix of reals, or of integers given as reals: element * inverse rounded to an integer. */
typedef struct amx_source {
  const float* values;
  size_t stride;        /* elements between rows */
  const float* inverse; /* NULL: reals as they are. Else one per row of a left operand ... */
  bool one_inverse;     /* ... or one for all */
} amx_source;

/* Left operand from rows of k values. `rows` from row 0 of the source; `packed` is filled up to the next pair of tiles. */
void amx_pack_left(const amx_source* source, size_t rows, size_t k, size_t pieces, uint8_t* packed);
/* Right operand, columns [0, columns): from k rows of `columns` values, or from rows of k values each (that is, transposed).
 * `inverse` is one for all. */
void amx_pack_right(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed);
void amx_pack_right_transposed(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed);

/* Where a product goes. Plain: y[row * stride + column]. Transposed: y[column * stride + row], then times row_scale[row] and plus
 * row_bias[row] where given. */
typedef struct amx_target {
  float* y;
  size_t stride;
  bool transposed;
  float scale;            /* of every element */
  const float* row_scale; /* NULL: 1 */
  const float* row_bias;  /* NULL: 0 */
} amx_target;

/* left [rows][k] times right [k][columns], both packed; `order` is 2 or 3. */
void amx_multiply(const uint8_t* left, size_t left_pieces, size_t rows, const uint8_t* right, size_t right_pieces, size_t columns, size_t k,
                  size_t order, const amx_target* target);

#endif
