/* The limit of Produce on one core: reads frames, computes CRC-32C over each, writes it to a file.
 *
 * No protocol, no log: a frame is four bytes of size and that many bytes, its response eight bytes
 * with the correlation id. Usage: produce_limit FILE; prints its port, serves until it is killed.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 16, ROOM = 4 << 20, MIN_FRAME = 12 };
static uint32_t table[256];
static struct pollfd polled[CLIENTS + 1];
static struct { uint8_t *buffer; size_t filled; } clients[CLIENTS + 1];

static void make_table(void) {
    for (int i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
        table[i] = crc;
    }
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_fast(const uint8_t *p, size_t n) {
    uint64_t crc = ~0u, word;
    for (; n >= 8; p += 8, n -= 8) { memcpy(&word, p, 8); crc = __builtin_ia32_crc32di(crc, word); }
    while (n--) crc = __builtin_ia32_crc32qi((uint32_t)crc, *p++);
    return ~(uint32_t)crc;
}
#endif

static uint32_t crc32c(const uint8_t *p, size_t n) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return crc32c_fast(p, n);
#endif
    uint32_t crc = ~0u;
    while (n--) crc = crc >> 8 ^ table[(crc ^ *p++) & 255];
    return ~crc;
}

static volatile uint32_t checked;

/* Process what is in the client's buffer; 0 if the connection is to be closed. */
static int serve(int index, int file) {
    uint8_t *at = clients[index].buffer, *end, replies[4096 * 8];
    ssize_t count = read(polled[index].fd, at + clients[index].filled, ROOM - clients[index].filled);
    size_t replied = 0;
    if (count <= 0) return 0;
    for (end = at + clients[index].filled + count; end - at >= 4;) {
        uint32_t size;
        memcpy(&size, at, 4);
        size = ntohl(size);
        if (size < MIN_FRAME || size > ROOM - 4) return 0;
        if ((size_t)(end - at) < size + 4) break;
        checked ^= crc32c(at + 4, size);
        if (write(file, at + 4, size) != (ssize_t)size) { perror("write"); exit(1); }
        memcpy(replies + replied, "\0\0\0\4", 4);
        memcpy(replies + replied + 4, at + 8, 4);
        replied += 8;
        at += size + 4;
        if (replied == sizeof replies) break;
    }
    clients[index].filled = end - at;
    memmove(clients[index].buffer, at, end - at);
    return !replied || write(polled[index].fd, replies, replied) == (ssize_t)replied;
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int file = argc > 1 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1, one = 1, last = 0;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    make_table();
    signal(SIGPIPE, SIG_IGN);
    if (file < 0 || bind(listener, (void *)&address, length) || listen(listener, CLIENTS)) return 1;
    getsockname(listener, (void *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    polled[0] = (struct pollfd){listener, POLLIN, 0};
    while (poll(polled, last + 1, -1) >= 0) {
        if (polled[0].revents) {
            int client = accept(listener, NULL, NULL), free = 1;
            while (free <= last && polled[free].fd >= 0) free++;
            if (free > CLIENTS) { close(client); continue; }
            if (free > last) last = free;
            setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            polled[free] = (struct pollfd){client, POLLIN, 0};
            if (!clients[free].buffer) clients[free].buffer = malloc(ROOM);
            clients[free].filled = 0;
        }
        for (int index = 1; index <= last; index++)
            if (polled[index].fd >= 0 && polled[index].revents && !serve(index, file)) {
                close(polled[index].fd);
                polled[index].fd = -1;
            }
    }
    return 1;
}
