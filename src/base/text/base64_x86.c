/* Base64 with the vector instructions of x86-64, 12 bytes to 16 characters in each half of a
 *register.
 *
 * Bytes a b c of a group are spread over four: b a c b. Read as two words of 16 bits, high byte
 *second, these are ab and bc, and each word holds two of the four fields of six bits:
 *
 *	ab = 111111 222222 ....   bc = ....333333 444444
 *
 * Multiplying by a power of two shifts each word by its own distance, which no shift of these sets
 *does: the upper half of the product moves fields 1 and 3 down to the low byte, the lower half
 *moves 2 and 4 up to the high one.
 *
 * A field becomes its character by adding what its range of the alphabet is away from it. Which
 *range that is comes from a saturated subtraction: 0 for 26 to 51, then one number each for 52 to
 *63; those below 26 are told apart by a comparison. */
#include "base/text/base64_encoders.h"

#ifdef __x86_64__

#include <immintrin.h>

#define SSSE3 __attribute__((target("ssse3")))
#define AVX2 __attribute__((target("avx2")))

#define FIELDS_1_3 0x0fc0fc00
#define DOWN_1_3 0x04000040 /* ab by 10, bc by 6 */
#define FIELDS_2_4 0x003f03f0
#define UP_2_4 0x01000010 /* ab by 4, bc by 8 */

#define SPREAD 1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10
#define UPPER_CASE 13
/* By range: a-z, ten times 0-9, +, /, A-Z. */
#define DISTANCES                                                                                 \
	'a' - 26, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, '0' - 52, \
		'0' - 52, '0' - 52, '+' - 62, '/' - 63, 'A', 0, 0

SSSE3 static inline __m128i encode_half(__m128i bytes)
{
	__m128i words = _mm_shuffle_epi8(bytes, _mm_setr_epi8(SPREAD));
	__m128i odd = _mm_mulhi_epu16(_mm_and_si128(words, _mm_set1_epi32(FIELDS_1_3)),
				      _mm_set1_epi32(DOWN_1_3));
	__m128i even = _mm_mullo_epi16(_mm_and_si128(words, _mm_set1_epi32(FIELDS_2_4)),
				       _mm_set1_epi32(UP_2_4));
	__m128i fields = _mm_or_si128(odd, even);
	__m128i upper =
		_mm_and_si128(_mm_cmplt_epi8(fields, _mm_set1_epi8(26)), _mm_set1_epi8(UPPER_CASE));
	__m128i range = _mm_or_si128(_mm_subs_epu8(fields, _mm_set1_epi8(51)), upper);

	return _mm_add_epi8(fields, _mm_shuffle_epi8(_mm_setr_epi8(DISTANCES), range));
}

AVX2 static inline __m256i encode_whole(__m256i bytes)
{
	__m256i words = _mm256_shuffle_epi8(bytes, _mm256_setr_epi8(SPREAD, SPREAD));
	__m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(words, _mm256_set1_epi32(FIELDS_1_3)),
					 _mm256_set1_epi32(DOWN_1_3));
	__m256i even = _mm256_mullo_epi16(_mm256_and_si256(words, _mm256_set1_epi32(FIELDS_2_4)),
					  _mm256_set1_epi32(UP_2_4));
	__m256i fields = _mm256_or_si256(odd, even);
	__m256i upper = _mm256_and_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(26), fields),
					 _mm256_set1_epi8(UPPER_CASE));
	__m256i range = _mm256_or_si256(_mm256_subs_epu8(fields, _mm256_set1_epi8(51)), upper);

	return _mm256_add_epi8(fields,
			       _mm256_shuffle_epi8(_mm256_setr_epi8(DISTANCES, DISTANCES), range));
}

/* A load takes 16 bytes, of which 12 are used: all 16 must be there. */
SSSE3 size_t coop_base64_encode_ssse3(const uint8_t *data, size_t size, char *text)
{
	const uint8_t *in = data;

	for (; size >= 16; size -= 12, in += 12, text += 16)
		_mm_storeu_si128((__m128i *)(void *)text,
				 encode_half(_mm_loadu_si128((const __m128i *)(const void *)in)));
	return (size_t)(in - data);
}

AVX2 static inline __m256i load_24(const uint8_t *in)
{
	__m128i low = _mm_loadu_si128((const __m128i *)(const void *)in);
	__m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + 12));

	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

AVX2 size_t coop_base64_encode_avx2(const uint8_t *data, size_t size, char *text)
{
	const uint8_t *in = data;

	/* Two at a time keep the multipliers busy. */
	for (; size >= 52; size -= 48, in += 48, text += 64) {
		__m256i first = encode_whole(load_24(in)), second = encode_whole(load_24(in + 24));
		_mm256_storeu_si256((__m256i *)(void *)text, first);
		_mm256_storeu_si256((__m256i *)(void *)(text + 32), second);
	}
	if (size >= 28) {
		_mm256_storeu_si256((__m256i *)(void *)text, encode_whole(load_24(in)));
		size -= 24, in += 24, text += 32;
	}
	/* What is left is up to two halves. */
	for (; size >= 16; size -= 12, in += 12, text += 16) {
		__m256i half =
			_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)in));
		_mm_storeu_si128((__m128i *)(void *)text,
				 _mm256_castsi256_si128(encode_whole(half)));
	}
	return (size_t)(in - data);
}

#endif
