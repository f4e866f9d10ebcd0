/* JSON in a window of bytes: each function takes the place where something begins, and gives the
   place behind it, or NULL where it is not there as it should be. No byte is read but within. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define LIMIT_US (((int64_t)1 << 62) / 1000)
enum { MOST_DIGITS_OF_US = 16 };  /* what has more is beyond the limit */

typedef const uint8_t *Place;

/* is_ascii and is_plain are taken back where a string is more than that, or holds an escape. */
typedef struct { Place begin, end; bool is_ascii, is_plain; } Window;

/* A time: plain if it is a decimal number, within if below 2**62 ns. */
typedef struct { int64_t ns; bool is_plain, is_within; } Time;

static inline uint8_t byte_at(const Window *window, Place at)
{
    return at < window->end ? *at : 0;
}

/* Eight bytes, the first the lowest; compilers know this for one load. */
static inline uint64_t eight_at(Place at)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++)
        bytes |= (uint64_t)at[i] << (8 * i);
    return bytes;
}

static inline bool is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }

static inline bool is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static inline Place behind_space(const Window *window, Place at)
{
    while (is_space(byte_at(window, at)))
        at++;
    return at;
}

static const uint64_t ONES = UINT64_C(0x0101010101010101), HIGH = UINT64_C(0x8080808080808080);

/* How many bytes, of as many as are looked at at once, a string simply holds before another: one
   that ends it, begins an escape, or is no printable ASCII. */
#ifdef __SSE2__
enum { AT_ONCE = 16 };
static inline int num_plain(Place at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)at);
    __m128i is_quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i is_escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    __m128i is_other = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));  /* beyond ASCII is below 0 */
    int special = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(is_quote, is_escape), is_other));
    return special ? __builtin_ctz(special) : AT_ONCE;
}
#else
enum { AT_ONCE = 8 };
static inline int num_plain(Place at)
{
    uint64_t bytes = eight_at(at), quote = bytes ^ (ONES * '"'), escape = bytes ^ (ONES * '\\');
    uint64_t special = (((quote - ONES) & ~quote) | ((escape - ONES) & ~escape)
                        | ((bytes - ONES * 0x20) & ~bytes) | bytes) & HIGH;
    return special ? __builtin_ctzll(special) >> 3 : AT_ONCE;
}
#endif

/* The UTF-16 unit of four hexadecimal digits; negative where they are none. */
static int32_t unit_at(const Window *window, Place at)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t byte = byte_at(window, at + i), letter = (byte | 0x20) - 'a';
        if (!is_digit(byte) && letter > 5)
            return -1;
        unit = unit * 16 + (is_digit(byte) ? byte - '0' : letter + 10);
    }
    return unit;
}

/* `at` is behind the backslash; the halves of a surrogate pair must be together. */
static Place behind_escape(const Window *window, Place at)
{
    switch (byte_at(window, at)) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return at + 1;
    case 'u':
        break;
    default:
        return NULL;
    }
    int32_t unit = unit_at(window, at + 1);
    if (unit < 0 || (unit & 0xFC00) == 0xDC00)
        return NULL;
    if ((unit & 0xFC00) != 0xD800)
        return at + 5;
    bool is_pair = byte_at(window, at + 5) == '\\' && byte_at(window, at + 6) == 'u'
                   && (unit_at(window, at + 7) & ~0x3FF) == 0xDC00;
    return is_pair ? at + 11 : NULL;
}

/* The end of a string, for what is long or holds more than plain ASCII; `at` is somewhere in it. */
static Place behind_rest(Window *window, Place at)
{
    for (;;) {
        while (window->end - at >= AT_ONCE) {
            int plain = num_plain(at);
            at += plain;
            if (plain < AT_ONCE)
                break;
        }
        uint8_t byte = byte_at(window, at++);
        if (byte == '"')
            return at;
        if (byte < 0x20)
            return NULL;
        if (byte == '\\') {
            window->is_plain = false;
            if (!(at = behind_escape(window, at)))
                return NULL;
        }
        if (byte & 0x80)
            window->is_ascii = false;
    }
}

static inline Place behind_string(Window *window, Place at)
{
    at++;
    if (window->end - at > AT_ONCE) {
        at += num_plain(at);
        if (*at == '"')
            return at + 1;
    }
    return behind_rest(window, at);
}

/* How many of eight bytes are digits before another. */
static inline int num_digits(uint64_t bytes)
{
    uint64_t apart = bytes ^ (ONES * '0');
    uint64_t others = (((apart & ~HIGH) + ONES * 0x76) | apart) & HIGH;
    return others ? __builtin_ctzll(others) >> 3 : 8;
}

static inline Place behind_digits(const Window *window, Place at)
{
    while (window->end - at >= 8) {
        int num = num_digits(eight_at(at));
        at += num;
        if (num < 8)
            return at;
    }
    while (is_digit(byte_at(window, at)))
        at++;
    return at;
}

/* The number of so many digits, at most eighteen. */
static inline int64_t number_of(Place at, Place behind)
{
    int64_t number = 0;
    for (; behind - at >= 8; at += 8) {
        uint64_t bytes = eight_at(at) - ONES * '0';
        bytes = bytes * 10 + (bytes >> 8);
        const uint64_t twos = UINT64_C(0x000000FF000000FF);
        number = number * 100000000
                 + (((bytes & twos) * UINT64_C(0x000F424000000064)
                     + ((bytes >> 16) & twos) * UINT64_C(0x0000271000000001)) >> 32);
    }
    for (; at < behind; at++)
        number = number * 10 + (*at - '0');
    return number;
}

static Place behind_number(const Window *window, Place at)
{
    if (*at == '-')
        at++;
    Place behind = behind_digits(window, at);
    if (behind == at || (*at == '0' && behind > at + 1))
        return NULL;
    if (byte_at(window, behind) == '.') {
        at = behind + 1;
        if ((behind = behind_digits(window, at)) == at)
            return NULL;
    }
    if ((byte_at(window, behind) | 0x20) == 'e') {
        at = behind + 1;
        if (byte_at(window, at) == '+' || byte_at(window, at) == '-')
            at++;
        if ((behind = behind_digits(window, at)) == at)
            return NULL;
    }
    return behind;
}

static inline Place behind_word(const Window *window, Place at, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(window->end - at) >= size && !memcmp(at, word, size) ? at + size : NULL;
}

static inline Place behind_scalar(Window *window, Place at)
{
    switch (byte_at(window, at)) {
    case '"': return behind_string(window, at);
    case 't': return behind_word(window, at, "true");
    case 'f': return behind_word(window, at, "false");
    case 'n': return behind_word(window, at, "null");
    default: return at < window->end ? behind_number(window, at) : NULL;
    }
}

/* The place behind a time. It is read as decimal microseconds, rounded half up at the fourth
   decimal, as all our readers do; any other value is skipped, and is not plain. */
static Place behind_time(Window *window, Place at, Time *time)
{
    Place begin = at;
    bool is_negative = byte_at(window, at) == '-';
    Place digits = at + is_negative, point = behind_digits(window, digits);
    Place decimals = point, behind = point;
    bool has_point = point > digits && byte_at(window, point) == '.';
    if (has_point)
        behind = behind_digits(window, decimals = point + 1);
    bool has_exponent = (byte_at(window, behind) | 0x20) == 'e';
    if (point == digits || (has_point && behind == decimals) || has_exponent) {
        *time = (Time){0, false, false};
        return behind_scalar(window, begin);
    }
    if (*digits == '0' && point > digits + 1)
        return NULL;
    int64_t us = point - digits > MOST_DIGITS_OF_US ? LIMIT_US : number_of(digits, point);
    int64_t fraction = 0;
    for (int i = 0; i < 4; i++)
        fraction = fraction * 10 + (decimals + i < behind ? decimals[i] - '0' : 0);
    bool is_within = us < LIMIT_US;
    int64_t ns = is_within ? us * 1000 + (fraction + 5) / 10 : 0;
    *time = (Time){is_negative ? -ns : ns, true, is_within};
    return behind;
}
