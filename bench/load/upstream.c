// A cheap provider: answers any POST, from one thread, so that a measurement shows the gateway in front of it. A path that ends in /responses is answered
// in OpenAI's Responses dialect, one that ends in /messages in Anthropic's, whole answers only, one that contains Content in Google's, any other in
// OpenAI's chat completions. A body with "stream":true (Google: the path) gets --chunks chunks of about 215 bytes, then the end of the dialect's stream; without a pause they are written in blocks of 16 KB, with one each
// chunk is a write of its own. A body with "input":[ on the embeddings path gets 256 embeddings of 1,536 floats (5 MB). Any other gets 1 KB of JSON.
//
//   upstream --port 9700 --chunks 200 --pause 0 (microseconds between chunks) --life 3600 (seconds, then it ends by itself)
#define _GNU_SOURCE
#include <errno.h>
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

enum { BLOCK = 16384, EVENTS = 512 };

struct text { char bytes[8192]; size_t size; };

enum wire { CHAT, RESPONSES, ANTHROPIC, GOOGLE, WIRES };
struct words { struct text whole, opening, chunk, ending; };   // opening: of the stream, before its chunks

struct connection {
  int fd;
  char *in; size_t have, room;
  char *out; size_t queued, sent, out_room;
  bool streaming, wants_write, waiting, dead;
  enum wire wire;
  int chunks_said;
  uint64_t due;                    // microseconds; meaningful while waiting
  struct connection *behind;       // in the queue of those that wait for their next chunk
};

static int poller, chunks = 200;
static uint64_t pause_us;
static struct text head;
static struct words words_of[WIRES];
static char *vectors;
static size_t vectors_size;
static struct connection *first_waiting, *last_waiting;

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void listen_for(struct connection *c, int how) {
  struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP | (c->wants_write ? EPOLLOUT : 0), .data.ptr = c };
  epoll_ctl(poller, how, c->fd, &event);
}

static void release(struct connection *c) { free(c->in); free(c->out); free(c); }

/** A connection in the queue is only marked: the queue frees it when its turn comes. */
static void drop(struct connection *c) {
  close(c->fd);
  c->dead = true;
  if (!c->waiting) release(c);
}

static void say_bytes(struct connection *c, const char *bytes, size_t size) {
  if (c->queued + size > c->out_room) c->out = realloc(c->out, c->out_room = (c->queued + size) * 2);
  memcpy(c->out + c->queued, bytes, size);
  c->queued += size;
}

static void say(struct connection *c, const struct text *text) { say_bytes(c, text->bytes, text->size); }

/** False when the connection is broken. What does not fit waits for EPOLLOUT. */
static bool flush(struct connection *c) {
  while (c->sent < c->queued) {
    ssize_t n = send(c->fd, c->out + c->sent, c->queued - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return false;
    if (n < 0) {
      if (!c->wants_write) { c->wants_write = true; listen_for(c, EPOLL_CTL_MOD); }
      return true;
    }
    c->sent += n;
  }
  c->queued = c->sent = 0;
  if (c->wants_write) { c->wants_write = false; listen_for(c, EPOLL_CTL_MOD); }
  return true;
}

static void wait_for_turn(struct connection *c) {
  c->due += pause_us;
  c->waiting = true;
  c->behind = NULL;
  if (last_waiting) last_waiting->behind = c; else first_waiting = c;
  last_waiting = c;
}

/** Says the next chunk and waits, or without a pause as much as the socket takes. */
static bool stream_on(struct connection *c) {
  do {
    bool last = c->chunks_said == chunks;
    say(c, last ? &words_of[c->wire].ending : &words_of[c->wire].chunk);
    c->chunks_said++;
    if (last) c->streaming = false;
    if ((last || pause_us || c->queued >= BLOCK) && !flush(c)) return false;
  } while (c->streaming && !pause_us && !c->wants_write);
  if (c->streaming && pause_us) wait_for_turn(c);
  return true;
}

/** Bytes of the first request in the buffer, 0 while it is not all there. */
static size_t request_size(struct connection *c) {
  c->in[c->have] = 0;
  char *end = strstr(c->in, "\r\n\r\n");
  if (!end) return 0;
  size_t head_size = end + 4 - c->in;
  *end = 0;
  char *length = strcasestr(c->in, "\r\ncontent-length:"), *chunked = strcasestr(c->in, "\r\ntransfer-encoding: chunked");
  *end = '\r';
  if (chunked) return c->have > head_size && memcmp(c->in + c->have - 5, "0\r\n\r\n", 5) == 0 ? c->have : 0;
  size_t size = head_size + (length ? strtoul(length + 17, NULL, 10) : 0);
  return c->have >= size ? size : 0;
}

static bool answer_all(struct connection *c) {
  for (size_t size; !c->streaming && (size = request_size(c)) > 0;) {
    size_t line = (char *)memchr(c->in, '\n', size) - c->in;
    c->wire = memmem(c->in, line, "/responses ", 11) ? RESPONSES : memmem(c->in, line, "/messages ", 10) ? ANTHROPIC : memmem(c->in, line, "Content", 7) ? GOOGLE : CHAT;
    c->streaming = c->wire == GOOGLE ? memmem(c->in, line, ":stream", 7) != NULL : memmem(c->in, size, "\"stream\":true", 13) != NULL;
    bool embeds = memmem(c->in, line, "/embeddings ", 12) != NULL;
    c->have -= size;
    memmove(c->in, c->in + size, c->have);
    if (embeds) say_bytes(c, vectors, vectors_size);
    else if (c->streaming) say(c, &head), say(c, &words_of[c->wire].opening);
    else say(c, &words_of[c->wire].whole);
    c->chunks_said = 0;
    c->due = now_us();
    if (!(c->streaming ? stream_on(c) : flush(c))) return false;
  }
  return true;
}

static bool hear(struct connection *c) {
  for (;;) {
    if (c->room - c->have < BLOCK) c->in = realloc(c->in, (c->room *= 2) + 1);
    ssize_t n = recv(c->fd, c->in + c->have, c->room - c->have, 0);
    if (n < 0) return errno == EAGAIN ? answer_all(c) : false;
    if (n == 0) return false;
    c->have += n;
    if (n < BLOCK) return answer_all(c);
  }
}

static void welcome(int door) {
  for (int fd, one = 1; (fd = accept4(door, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->in = malloc((c->room = 2 * BLOCK) + 1);
    listen_for(c, EPOLL_CTL_ADD);
  }
}

static void speak_to_waiting(void) {
  for (uint64_t now = now_us(); first_waiting && first_waiting->due <= now;) {
    struct connection *c = first_waiting;
    if (!(first_waiting = c->behind)) last_waiting = NULL;
    c->waiting = false;
    if (c->dead) release(c);
    else if (!stream_on(c) || !answer_all(c)) drop(c);
  }
}

static const char same[] = "\"id\":\"chatcmpl-123456789\",\"created\":1794960000,\"model\":\"gpt-4o-mini-2024-07-18\",\"system_fingerprint\":\"fp_abc\"";

static void as_chunk(struct text *text, const char *events, const char *after) {
  text->size = sprintf(text->bytes, "%zx\r\n%s\r\n%s", strlen(events), events, after);
}

static void prepare_vectors(void) {
  enum { INPUTS = 256, DIMENSIONS = 1536, HEAD = 128 };
  char *body = malloc(INPUTS * (DIMENSIONS * 16 + 100) + 200), *at = body;
  at += sprintf(at, "{\"object\":\"list\",\"data\":[");
  for (int input = 0; input < INPUTS; input++) {
    at += sprintf(at, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":[", input ? "," : "", input);
    for (int n = 0; n < DIMENSIONS; n++) at += sprintf(at, "%s%.8f", n ? "," : "", ((input * 7919 + n * 104729) % 200003 - 100001) / 1500000.0);
    at += sprintf(at, "]}");
  }
  at += sprintf(at, "],\"model\":\"text-embedding-3-small\",\"usage\":{\"prompt_tokens\":2048,\"total_tokens\":2048}}");
  vectors = malloc(HEAD + (at - body));
  vectors_size = sprintf(vectors, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", (size_t)(at - body));
  memcpy(vectors + vectors_size, body, at - body);
  vectors_size += at - body;
  free(body);
}

static const char head_of_json[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s";
static char prose[800];

static void as_whole(struct text *text, const char *body) { text->size = sprintf(text->bytes, head_of_json, strlen(body), body); }

static void prepare_chat(struct words *words) {
  char usage[200], body[2048], events[2048];
  sprintf(usage, "{\"prompt_tokens\":219,\"completion_tokens\":%d,\"total_tokens\":%d}", chunks, 219 + chunks);
  sprintf(body, "{%s,\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\",\"refusal\":null,\"annotations\":[]},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":%s,\"service_tier\":\"default\"}", same, prose, usage);
  as_whole(&words->whole, body);
  sprintf(events, "data: {%s,\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" hello\"},\"finish_reason\":null}]}\n\n", same);
  as_chunk(&words->chunk, events, "");
  sprintf(events, "data: {%s,\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {%s,\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", same, same, usage);
  as_chunk(&words->ending, events, "0\r\n\r\n");
}

// Numbers of events are all 3 but in the opening: who reads them here only counts.
static void prepare_responses(struct words *words) {
  static const char before[] = "\"id\":\"resp_123456789\",\"object\":\"response\",\"created_at\":1794960000,\"model\":\"gpt-4o-mini-2024-07-18\",\"parallel_tool_calls\":true,\"temperature\":1,\"tool_choice\":\"auto\",\"tools\":[],\"top_p\":1,\"metadata\":{},\"instructions\":null,\"error\":null,\"incomplete_details\":null";
  static const char item[] = "{\"id\":\"msg_123456789\",\"type\":\"message\",\"status\":\"%s\",\"role\":\"assistant\",\"content\":[%s]}";
  char usage[300], text[1200], done[1600], begun[200], response[3200], events[6000];
  sprintf(usage, "{\"input_tokens\":219,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":%d}", chunks, 219 + chunks);
  sprintf(text, "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"%s\"}", prose);
  sprintf(done, item, "completed", text);
  sprintf(begun, item, "in_progress", "");
  sprintf(response, "{%s,\"status\":\"completed\",\"output\":[%s],\"usage\":%s}", before, done, usage);
  as_whole(&words->whole, response);
  sprintf(events, "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{%s,\"status\":\"in_progress\",\"output\":[],\"usage\":null}}\n\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":%s}\n\nevent: response.content_part.added\ndata: {\"type\":\"response.content_part.added\",\"sequence_number\":2,\"item_id\":\"msg_123456789\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"\"}}\n\n", before, begun);
  as_chunk(&words->opening, events, "");
  as_chunk(&words->chunk, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":3,\"item_id\":\"msg_123456789\",\"output_index\":0,\"content_index\":0,\"delta\":\" hello\",\"logprobs\":[],\"obfuscation\":\"abc\"}\n\n", "");
  sprintf(events, "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":3,\"output_index\":0,\"item\":%s}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":%s}\n\n", done, response);
  as_chunk(&words->ending, events, "0\r\n\r\n");
}

static void prepare_anthropic(struct words *words) {
  char body[2048];
  sprintf(body, "{\"id\":\"msg_123456789\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-haiku-4-5\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":219,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":%d,\"service_tier\":\"standard\"}}", prose, chunks);
  as_whole(&words->whole, body);
}

static void prepare_google(struct words *words) {
  static const char envelope[] = "\"modelVersion\":\"gemini-2.5-flash\",\"responseId\":\"abcdefghijklmnop\"";
  char usage[200], body[2048];
  sprintf(usage, "\"usageMetadata\":{\"promptTokenCount\":219,\"candidatesTokenCount\":%d,\"totalTokenCount\":%d}", chunks, 219 + chunks);
  sprintf(body, "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"%s\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],%s,%s}", prose, usage, envelope);
  as_whole(&words->whole, body);
  sprintf(body, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" hello\"}],\"role\":\"model\"},\"index\":0}],%s,%s}\r\n\r\n", usage, envelope);
  as_chunk(&words->chunk, body, "");
  sprintf(body, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\"}],\"role\":\"model\"},\"finishReason\":\"STOP\",\"index\":0}],%s,%s}\r\n\r\n", usage, envelope);
  as_chunk(&words->ending, body, "0\r\n\r\n");
}

static void prepare(void) {
  for (size_t n = 0; n < 600;) n += sprintf(prose + n, "The quick brown fox \\\"jumps\\\" over %zu dogs. ", n);
  head.size = sprintf(head.bytes, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n");
  prepare_chat(&words_of[CHAT]);
  prepare_responses(&words_of[RESPONSES]);
  prepare_anthropic(&words_of[ANTHROPIC]);
  prepare_google(&words_of[GOOGLE]);
}

int main(int count, char **words) {
  static const struct option options[] = { { "port", 1, 0, 'p' }, { "chunks", 1, 0, 'c' }, { "pause", 1, 0, 'w' }, { "life", 1, 0, 'l' }, { 0 } };
  int port = 9700, life = 3600, one = 1;
  for (int o; (o = getopt_long(count, words, "", options, NULL)) != -1;) {
    if (o == 'p') port = atoi(optarg);
    else if (o == 'c') chunks = atoi(optarg);
    else if (o == 'w') pause_us = strtoull(optarg, NULL, 10);
    else if (o == 'l') life = atoi(optarg);
    else return 2;
  }
  alarm(life);
  signal(SIGPIPE, SIG_IGN);
  prepare();
  prepare_vectors();

  int door = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in place = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(door, (void *)&place, sizeof place) || listen(door, 8192)) return perror("upstream"), 1;
  poller = epoll_create1(0);
  struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL }, heard[EVENTS];
  epoll_ctl(poller, EPOLL_CTL_ADD, door, &event);

  for (;;) {
    int64_t left = first_waiting ? (int64_t)(first_waiting->due - now_us()) : 0;
    int n = epoll_wait(poller, heard, EVENTS, first_waiting ? (left > 0 ? (left + 999) / 1000 : 0) : -1);
    for (int i = 0; i < n; i++) {
      struct connection *c = heard[i].data.ptr;
      if (!c) { welcome(door); continue; }
      bool well = true;
      if (heard[i].events & EPOLLOUT) well = flush(c) && (!c->streaming || pause_us || c->wants_write || stream_on(c));
      if (well && heard[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) well = hear(c);
      if (!well) drop(c);
    }
    speak_to_waiting();
  }
}
