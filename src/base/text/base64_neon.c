/* Base64 with the vector instructions of arm64: loads and stores of these take groups apart and put
 * them together, and the whole alphabet fits into the four registers of one look-up. */
#include "base/text/base64_encoders.h"

#if defined(__aarch64__) && defined(__ARM_NEON)

#include <arm_neon.h>

static const uint8_t alphabet[64] = {
	'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N', 'O', 'P',
	'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'a', 'b', 'c', 'd', 'e', 'f',
	'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v',
	'w', 'x', 'y', 'z', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '/',
};

size_t coop_base64_encode_neon(const uint8_t *data, size_t size, char *text)
{
	const uint8x16x4_t table = {{vld1q_u8(alphabet), vld1q_u8(alphabet + 16),
				     vld1q_u8(alphabet + 32), vld1q_u8(alphabet + 48)}};
	const uint8x16_t six = vdupq_n_u8(63);
	const uint8_t *in = data;

	for (; size >= 48; size -= 48, in += 48, text += 64) {
		uint8x16x3_t group = vld3q_u8(in);
		uint8x16_t a = group.val[0], b = group.val[1], c = group.val[2];
		uint8x16x4_t out = {{
			vqtbl4q_u8(table, vshrq_n_u8(a, 2)),
			vqtbl4q_u8(table, vandq_u8(vsliq_n_u8(vshrq_n_u8(b, 4), a, 4), six)),
			vqtbl4q_u8(table, vandq_u8(vsliq_n_u8(vshrq_n_u8(c, 6), b, 2), six)),
			vqtbl4q_u8(table, vandq_u8(c, six)),
		}};
		vst4q_u8((uint8_t *)text, out);
	}
	return (size_t)(in - data);
}

#endif
