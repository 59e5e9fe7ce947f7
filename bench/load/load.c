// Cheap clients: kept-alive connections that each send the same POST, wait for the whole answer and send the next. Prints one line of JSON: requests
// answered, failures, `data:` lines, milliseconds to the first body byte and to the last.
//
//   load --port 8080 --path /v1/chat/completions --body FILE --headers FILE (lines that end in CRLF) --clients 32 --seconds 3
//        --each 0       requests per client; 0 = until the seconds are over. Requests in flight are then waited for (30 s at most).
//        --ramp 0       seconds over which the clients arrive
//        --rate 0       requests a second in all, each by the client that has rested longest; 0 = each client asks again as soon as it has its answer
//        --together 0   1: no client sends its next request before all have their answers; then all send at once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 512, SAMPLES = 4000000, GRACE_US = 30000000, REST_US = 20000 };
enum reading { HEAD, BODY, CHUNK_SIZE, CHUNK, CHUNK_END, LAST_LINE };

struct client {
  int fd;
  bool connected, busy, good, closes;
  enum reading reading;
  char head[8192]; int head_size;
  char line[24]; int line_size;
  long left;                      // bytes of the body or chunk; -1: until the connection closes
  int matched;                    // letters of "data: " seen so far
  int sent;                       // requests
  uint64_t asked_at, first_at;
};

static int poller, port, count_clients = 1, each, together;
static char *request; static size_t request_size;
static struct client *clients;
static long requests, failed, lines, busy, samples;
static uint32_t *first_us, *whole_us;

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void connect_client(struct client *c) {
  int one = 1;
  struct sockaddr_in place = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  c->connected = connect(c->fd, (void *)&place, sizeof place) == 0;
  if (!c->connected) { close(c->fd); return; }
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
  epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
}

static void ask(struct client *c) {
  if (!c->connected) connect_client(c);
  c->sent++;
  if (!c->connected) { failed++; return; }
  c->busy = true;
  c->good = true;
  busy++;
  c->reading = HEAD;
  c->head_size = c->line_size = c->matched = 0;
  c->first_at = 0;
  c->asked_at = now_us();
  for (size_t sent = 0; sent < request_size;) {
    ssize_t n = send(c->fd, request + sent, request_size - sent, MSG_NOSIGNAL);
    if (n <= 0) return;           // the broken connection shows at the next read
    sent += n;
  }
}

static void finish(struct client *c, bool complete) {
  uint64_t now = now_us();
  c->busy = false;
  busy--;
  if (complete && c->good) {
    requests++;
    if (samples < SAMPLES) {
      first_us[samples] = (c->first_at ? c->first_at : now) - c->asked_at;
      whole_us[samples++] = now - c->asked_at;
    }
  } else failed++;
  if (complete && !c->closes) return;
  close(c->fd);
  c->connected = false;
}

static void count_lines(struct client *c, const char *bytes, long size) {
  static const char word[] = "data: ";
  for (long i = 0; i < size; i++) {
    c->matched = bytes[i] == word[c->matched] ? c->matched + 1 : bytes[i] == 'd';
    if (word[c->matched] == 0) { lines++; c->matched = 0; }
  }
}

/** Takes bytes until the head is complete; then says how the body is framed. */
static long read_head(struct client *c, const char *bytes, long size) {
  long room = sizeof c->head - 1 - c->head_size, taken = size < room ? size : room;
  memcpy(c->head + c->head_size, bytes, taken);
  int before = c->head_size;
  c->head[c->head_size += taken] = 0;
  char *end = strstr(c->head, "\r\n\r\n");
  if (!end) {
    if (taken == room) finish(c, false);
    return taken;
  }
  *end = 0;
  c->good = strncmp(c->head + 9, "200", 3) == 0;
  c->closes = strcasestr(c->head, "\r\nconnection: close") != NULL;
  char *length = strcasestr(c->head, "\r\ncontent-length:");
  bool chunked = strcasestr(c->head, "\r\ntransfer-encoding: chunked") != NULL;
  c->reading = chunked ? CHUNK_SIZE : BODY;
  c->left = length ? atol(length + 17) : -1;
  if (!chunked && c->left < 0) c->closes = true;
  if (!chunked && c->left == 0) finish(c, true);
  return end + 4 - c->head - before;
}

static void hear(struct client *c, const char *bytes, long size) {
  while (size > 0 && c->busy) {
    long taken = 1;
    if (c->reading == HEAD) taken = read_head(c, bytes, size);
    else {
      if (!c->first_at) c->first_at = now_us();
      if (c->reading == BODY || c->reading == CHUNK) {
        taken = c->left < 0 || size < c->left ? size : c->left;
        count_lines(c, bytes, taken);
        if (c->left >= 0 && (c->left -= taken) == 0) {
          if (c->reading == BODY) finish(c, true);
          else c->reading = CHUNK_END;
        }
      } else if (*bytes != '\n') {
        if (c->reading == CHUNK_SIZE && c->line_size < 20) c->line[c->line_size++] = *bytes;
      } else if (c->reading == CHUNK_END) c->reading = CHUNK_SIZE;
      else if (c->reading == LAST_LINE) finish(c, true);
      else {
        c->line[c->line_size] = 0;
        c->line_size = 0;
        c->left = strtol(c->line, NULL, 16);
        c->reading = c->left > 0 ? CHUNK : LAST_LINE;
      }
    }
    bytes += taken;
    size -= taken;
  }
}

static char *file_text(const char *name, size_t *size) {
  char *text = calloc(1, 1 << 22);
  FILE *file = fopen(name, "r");
  if (!file) { perror(name); exit(2); }
  *size = fread(text, 1, (1 << 22) - 1, file);
  fclose(file);
  return text;
}

static void write_request(const char *path, const char *body_file, const char *headers_file) {
  size_t body_size, headers_size = 0;
  char *body = file_text(body_file, &body_size), *headers = headers_file ? file_text(headers_file, &headers_size) : "";
  request = malloc(body_size + headers_size + strlen(path) + 256);
  request_size = sprintf(request, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n", path, port, headers, body_size);
  memcpy(request + request_size, body, body_size);
  request_size += body_size;
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void print_times(const char *name, uint32_t *us) {
  qsort(us, samples, sizeof *us, by_size);
  printf(",\"%s\":{\"p50\":%.3f,\"p99\":%.3f}", name, samples ? us[(samples - 1) / 2] / 1e3 : 0, samples ? us[(long)((samples - 1) * 0.99)] / 1e3 : 0);
}

int main(int count, char **words) {
  static const struct option options[] = { { "port", 1, 0, 'p' }, { "path", 1, 0, 'a' }, { "body", 1, 0, 'b' }, { "headers", 1, 0, 'h' }, { "clients", 1, 0, 'c' },
    { "seconds", 1, 0, 's' }, { "each", 1, 0, 'e' }, { "ramp", 1, 0, 'r' }, { "together", 1, 0, 't' }, { "rate", 1, 0, 'f' }, { 0 } };
  const char *path = "/", *body = "/dev/null", *headers = NULL;
  double seconds = 3, ramp = 0, rate = 0;
  for (int o; (o = getopt_long(count, words, "", options, NULL)) != -1;) {
    if (o == 'p') port = atoi(optarg);
    else if (o == 'a') path = optarg;
    else if (o == 'b') body = optarg;
    else if (o == 'h') headers = optarg;
    else if (o == 'c') count_clients = atoi(optarg);
    else if (o == 's') seconds = atof(optarg);
    else if (o == 'e') each = atoi(optarg);
    else if (o == 'r') ramp = atof(optarg);
    else if (o == 't') together = atoi(optarg);
    else if (o == 'f') rate = atof(optarg);
    else return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  write_request(path, body, headers);
  poller = epoll_create1(0);
  clients = calloc(count_clients, sizeof *clients);
  first_us = malloc(SAMPLES * sizeof *first_us);
  whole_us = malloc(SAMPLES * sizeof *whole_us);
  if (together || rate) for (int i = 0; i < count_clients; i++) connect_client(&clients[i]);

  uint64_t begun = now_us(), until = begun + seconds * 1e6, rest_until = begun;
  int arrived = 0, next = 0;
  long due = 0;
  static char bytes[262144];
  struct epoll_event heard[EVENTS];
  for (uint64_t now = begun; now < until + GRACE_US; now = now_us()) {
    bool open = now < until;
    if (together && open && busy == 0 && now >= rest_until && (!each || clients[0].sent < each)) for (arrived = 0; arrived < count_clients;) ask(&clients[arrived++]);
    for (int tried = 0; rate && open && due < (now - begun) / 1e6 * rate && tried < count_clients; tried++, next = (next + 1) % count_clients)
      if (!clients[next].busy) ask(&clients[next]), due++, tried = -1;
    while (!together && !rate && open && arrived < count_clients && now >= begun + (uint64_t)(arrived * ramp * 1e6 / count_clients)) ask(&clients[arrived++]);
    if (busy == 0 && (!open || (!together && !rate && arrived == count_clients))) break;
    int n = epoll_wait(poller, heard, EVENTS, 1);
    for (int i = 0; i < n; i++) {
      struct client *c = heard[i].data.ptr;
      ssize_t size = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
      if (size < 0 && errno == EAGAIN) continue;
      if (size > 0) hear(c, bytes, size);
      else if (c->busy) finish(c, size == 0 && c->reading == BODY && c->left < 0);
      else { close(c->fd); c->connected = false; }
      if (!c->busy && together && busy == 0) rest_until = now_us() + REST_US;
      if (!c->busy && !together && !rate && now_us() < until && (!each || c->sent < each)) ask(c);
    }
  }
  printf("{\"requests\":%ld,\"failed\":%ld,\"unfinished\":%ld,\"lines\":%ld,\"seconds\":%.3f", requests, failed, busy, lines, (now_us() - begun) / 1e6);
  print_times("first", first_us);
  print_times("whole", whole_us);
  puts("}");
}
