/* JSON in a window of bytes: each function takes the place where something begins, and gives the
   place behind it, or NULL where it is not there as it should be. No byte is read but within. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LIMIT_US (((int64_t)1 << 62) / 1000)

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

/* How many bytes, of as many as are looked at at once, a string simply holds before another. */
enum { AT_ONCE = 8 };
static inline int num_plain(Place at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t bytes = eight_at(at), quote = bytes ^ (ones * '"'), escape = bytes ^ (ones * '\\');
    uint64_t special = (((quote - ones) & ~quote) | ((escape - ones) & ~escape)
                        | ((bytes - ones * 0x20) & ~bytes) | bytes) & high;
    return special ? __builtin_ctzll(special) >> 3 : AT_ONCE;
}

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

static inline Place behind_digits(const Window *window, Place at)
{
    while (is_digit(byte_at(window, at)))
        at++;
    return at;
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
    at += is_negative;
    Place digits = at;
    int64_t us = 0, fraction = 0;
    for (; is_digit(byte_at(window, at)); at++)
        if (us < LIMIT_US)
            us = us * 10 + (*at - '0');
    int num_decimals = -1;
    if (at > digits && byte_at(window, at) == '.')
        for (at++, num_decimals = 0; is_digit(byte_at(window, at)); at++, num_decimals++)
            if (num_decimals < 4)
                fraction = fraction * 10 + (*at - '0');
    bool has_exponent = (byte_at(window, at) | 0x20) == 'e';
    if (at == digits || !num_decimals || has_exponent) {
        *time = (Time){0, false, false};
        return behind_scalar(window, begin);
    }
    if (*digits == '0' && is_digit(byte_at(window, digits + 1)))
        return NULL;
    for (num_decimals = num_decimals < 0 ? 0 : num_decimals; num_decimals < 4; num_decimals++)
        fraction *= 10;
    bool is_within = us < LIMIT_US;
    int64_t ns = is_within ? us * 1000 + (fraction + 5) / 10 : 0;
    *time = (Time){is_negative ? -ns : ns, true, is_within};
    return at;
}
