/**
 * The rows of the reliability and security plan that must hold before anything is called usable (P0), each as one sentence.
 * A test proves a row by having its id in its title: `test('a stream cut by FIN ends in an error event [F-06]', …)`.
 * A row of lower priority is written down here together with its proof.
 */
export interface Row {
  readonly id: string;
  readonly says: string;
}

/** Who proves a row. */
export type Part =
  | 'agents'
  | 'books'
  | 'chat'
  | 'console'
  | 'embeddings'
  | 'files'
  | 'gencompat'
  | 'keys'
  | 'load'
  | 'native'
  | 'operations'
  | 'outbound'
  | 'store'
  | 'supply-chain';

export const rows: readonly Row[] = Object.entries({
  'L-01': 'chat at full load: requests a second and added latency against the bare proxy, no errors',
  'L-02': '2,000 concurrent slow streams: every event arrives in order, none is reset, memory a stream is bounded',
  'L-04': 'five minutes of mixed load: heap, files, timers and connections return to where they were',
  'L-08': '100 slow readers on fast streams: back-pressure reaches the upstream, the slow ones are cut in the end and billed for what was sent',

  'O-01': 'three times the capacity: goodput stays, the excess is refused with 429 or 503 and Retry-After within 100 ms',
  'O-03': 'after an overload latency is back to normal within 5 s and no queue is left',
  'O-04': 'real SDK clients do not triple an overload: Retry-After is jittered, a spent quota says x-should-retry: false',
  'O-05': 'health, metrics and revocation answer within 250 ms during an overload',
  'O-06': 'a slow upstream fills a bounded number of places and a bounded queue; the rest is shed',
  'O-08': 'conversions and large embeddings do not block the event loop for others',
  'O-09': 'a tenant with ten times its share costs another nothing',
  'O-12': 'a flood of wrong keys leaves real users alone and the caches bounded',
  'O-13': 'an agent that never stops calling tools is stopped by caps, with a stated reason, and charged',

  'F-01': 'connection refused: the next target, or 502/503 within a second without host names',
  'F-02': 'a name that does not resolve, or slowly: within the connect timeout, and other upstreams do not wait for it',
  'F-04': 'a hang before the headers: failover or 504, and the reservation is released',
  'F-05': 'silence in the middle of a stream: keep-alives, then the idle timeout, an error event, settled as partial, no retry',
  'F-06': 'FIN in the middle of a stream: an error event and no [DONE]; the books say that it was cut',
  'F-07': 'RST in the middle of a stream, of a character, of a JSON text: an error event, and no half event is passed on',
  'F-08': 'a body without its terminator or shorter than its Content-Length: 502, never a 200 with part of a JSON text',
  'F-09': 'a 200 with malformed JSON, HTML, nothing, null or an array: 502, the body is not echoed',
  'F-10': 'an error inside a 200 stream: as first event a status, later an error event in the dialect of the client',
  'F-11': 'no [DONE], two of them, data after it, any line end, comments, one byte a packet: the same bytes to the client as from a clean run',
  'F-12': 'usage missing, null, negative, as strings, 1e308, huge, twice: the books take a sane value or an estimate that says so',
  'F-13': '429 with Retry-After of every kind: understood or ignored safely, never waited for past the deadline, passed on',
  'F-14': '5xx is retried within the deadline and told in its class; 4xx is never retried; a bad provider key is not a 401 to the client',
  'F-16': 'giant bodies, lines, numbers of events and of choices, deep JSON: capped, 502, the upstream closed, memory flat',
  'F-17': 'encoded, doubly encoded, bombs, a thousand encodings: decoded rightly or refused',
  'F-19': '1xx, 204, 304 and redirects: never followed with credentials, 502',
  'F-21': 'a kept-alive connection that closes as we write: no error reaches a client whose request was not yet processed',
  'F-23': 'hostile response headers: bounded, and only allow-listed ones reach the client',
  'F-24': 'all upstreams down for ten minutes, then up: fast failures, quick recovery, no herd',

  'R-01': 'all 128 masks of busy regions: 200 whenever one is healthy, each region at most once, the request unchanged',
  'R-02': 'masks of different faults: the same, and a hang costs one timeout of a try only',
  'R-03': 'a bad request, a bad key, an address that is not there, a safety block: exactly one attempt',
  'R-04': 'a failure after the first streamed byte: no second region, an error event',
  'R-05': 'a region that is always busy is probed once a cooldown, not by every request',
  'R-07': 'half of all answers 503: the retry budget bounds the attempts',
  'R-09': '500 parallel requests over a mixed mask: no cross-talk, the counts agree with the upstream',
  'R-10': 'a model missing in a region falls back within its tier, and modelVersion says what answered',
  'R-13': '1,000 callers who leave do not touch the health of the target',
  'R-14': 'a model that streams the same chunk 300 times: all 300 arrive',

  'S-01': 'any failure after the first byte: one attempt in all',
  'S-02': 'any failure before the first byte: a real status or failover, and no premature role chunk',
  'S-03': 'a client that leaves in the middle of a stream: the upstream is closed within 100 ms, nothing is retried',
  'S-04': 'a client that leaves in the middle of a stream: booked within a second for what was generated',
  'S-05': 'a client that leaves before the headers: the upstream is aborted, input settled, the reservation released',
  'S-06': 'a client that leaves in the tick of completion: exactly one settlement, 10,000 times',
  'S-09': 'a storm of cancels with a canary in each request: no canary ever shows up elsewhere',
  'S-12': 'two requests on one connection: answered in order, not mixed',
  'S-10': 'real SDKs read 1,000 streams of sliced packets without an error',

  'Q-01': '200 parallel requests against what 10 need: never over the limit, and exactly those that fit succeed',
  'Q-02': 'the same over several processes and machines, and without max_tokens',
  'Q-03': 'every endpoint that spends answers 429 at quota 0 and nothing goes upstream',
  'Q-04': 'a stream that needs more than its reservation overshoots by at most one step',
  'Q-05': '1,000 failed or cancelled requests leave no reservation behind',
  'Q-07': 'a month that ends under load: each request is counted in exactly one month, and the months add up to the rows',
  'Q-08': 'a limit lowered or a user gone while 100 streams run: new requests are refused within a second, running ones are settled',
  'Q-09': 'negative, absurd and huge token numbers are refused before anything is reserved',
  'Q-10': 'several keys of one user share one quota exactly',
  'Q-12': 'monthly counts, logs, the usage in the answer and the one of the upstream are equal',
  'Q-13': 'cached answers, retries and failovers are billed once',
  'Q-14': 'damaged plan or quota rows fail closed for that tenant only',
  'A-01': 'after every run: each acknowledged answer has one row, sums agree, nothing stays reserved',
  'A-02': 'kill -9 at random points: every acknowledged request is accounted for, the cut ones within 30 s',
  'A-03': 'kill -9 at each named point between the end of the upstream and the commit',
  'A-04': 'one of two workers is killed: the other never fails, another takes its place within a second, what it held and did not spend is free again',
  'A-05': 'an uncaught mistake: it is logged, what is in flight ends well, the process exits and leaves no lock',
  'A-06': 'an idempotency key sent again, at once, after a restart or a kill: one upstream call, the same bytes, booked once',
  'A-07': 'an idempotency key with another body is refused with 422, without an upstream call',
  'A-08': 'the same idempotency key of another user is independent',

  'D-02': 'a full disk: spending is refused, reading works, recovery without a restart, no damaged row',
  'D-04': 'the database stopped for 60 s: bounded lease, then 503, never a 401, quick recovery',
  'D-05': 'the database away: valid keys are never 401, revoked and unknown ones never succeed',
  'D-06': 'a slow database: chat does not wait for it, the queue is bounded',
  'D-07': 'a small pool under load: no connection too many, no deadlock',
  'D-08': 'sessions ended from outside and a database that became read-only: noticed, not failed for, caught up with',
  'D-09': 'a foreign lock on the database does not block the event loop',

  'G-01': 'SIGTERM with 200 streams in flight: not ready at once, all complete, exit 0, settled',
  'G-02': 'SIGTERM with streams longer than the grace: an error event, settled as partial, exit 0',
  'G-03': 'a second signal, a killed parent, npm start: ends at once but settled, the child hears it',
  'G-05': 'a revoked key is refused within a second, within five with the notify channel cut',
  'G-06': 'a key revoked while it is in use stays revoked',
  'G-08': 'a bad configuration is refused at start and leaves the running one in place on reload',

  'B-01': 'a backup under load restores to a consistent snapshot with its secrets still sealed',
  'B-02': 'a restore with a wrong key refuses and overwrites nothing',
  'B-03': 'every released schema migrates to the head with its data',
  'B-04': 'kill -9 in each migration step: it completes or rolls back, and two starters migrate once',

  'I-01': 'a fuzz of every operation: no 5xx, no hang, every answer in its dialect',
  'I-02': 'JSON bombs: refused within 100 ms without blocking the event loop',
  'I-03': 'absurd numbers: out of range is 400, and infinity never goes upstream as null',
  'I-04': 'keys like __proto__ anywhere are refused or inert',
  'I-05': 'duplicate keys: 400, or what is checked and billed is what goes upstream',
  'I-06': 'query, body and headers that disagree have one documented winner',
  'I-07': 'invalid UTF-8, lone surrogates, BOM, NUL: 400 or carried faithfully',
  'I-08': 'a body too large, without length, with a wrong length, too slow: 413 or 408, memory bounded',
  'I-09': 'wrong content types and encoded bodies: 415 or capped',
  'I-10': 'multipart bombs: refused within 200 ms, no temporary file left',
  'I-11': 'multipart boundaries of every kind: linear time',
  'I-13': 'hostile JSON Schemas of clients: nothing is fetched, size and depth are capped',
  'I-14': '0, 1, 256 and 257 embedding inputs, empty and nested ones: the statuses of the specification',
  'I-16': 'limits of -1, 0, 1e9, "5": clamped or 400, never a full table',
  'I-17': 'messages, contents and tool choices of wrong shapes: 400 with the path of the field',
  'I-19': 'what goes into upstream headers and addresses cannot split or lengthen them',
  'I-20': 'no model name in the path of generateContent changes the upstream path',
  'I-21': 'no model name in a body changes the upstream host or path',
  'I-22': 'no file id, dataset or file name changes a path',
  'I-23': 'a publisher outside the allow-list is refused',
  'I-24': 'paths are decoded once',

  'H-01': 'request smuggling: refused and closed, never two answers for one request',
  'H-02': 'slow headers, slow bodies, slow readers are closed in time and others do not notice',
  'H-03': 'a flood of idle connections: accepted up to a bound, no crash, accepting resumes',
  'H-04': 'floods of headers, cookies and long addresses: 431 or 414',
  'H-06': 'two Host headers, an address that is no path, CONNECT, other versions of HTTP: 400 or 405',
  'H-07': 'a hostile Host header changes nothing: 400, never 500',
  'H-09': 'path tricks: one canonical route, seen alike by authentication and router',
  'H-10': 'a big body without a credential is refused before it is read',

  'T-01': "every id-taking field with another user's id: as if it did not exist, and nothing changed",
  'T-02': 'streams, jobs and stored results by id: the same',
  'T-03': 'copying and unassigning with mixed ownership: all or nothing',
  'T-04': 'a read-only share is read-only, and ends at once when it is revoked',
  'T-05': 'every scope on every route as the table says, and no scoped key makes a wider one',
  'T-06': 'no write endpoint takes owner, role, plan or id from the body',
  'T-07': 'every route without or with the wrong credential is 401 but those listed as public',
  'T-08': "retrieval never crosses into another's dataset",
  'T-09': "no cache answers one user with another's",
  'T-10': 'authenticated answers are private and not stored',
  'T-11': 'what is softly deleted is invisible and unusable to all',
  'T-12': '500 concurrent requests of two users: no cross-talk',
  'T-14': 'ids that open something cannot be guessed, integers are always checked for their owner',

  'K-01': 'API keys: enough chance, prefix and checksum, shown once',
  'K-02': 'no key or secret in clear anywhere at rest',
  'K-03': 'a deleted key is refused within a second, and so are its tokens',
  'K-04': 'a suspended user is refused with every kind of credential',
  'K-05': 'get-token tells nobody by time, status or words which emails exist',
  'K-06': 'forged, confused and foreign tokens are 401 without any fetch',
  'K-08': 'sealed secrets: no nonce twice, bound to owner and id, a flipped bit is a clean error',
  'K-09': 'canary secrets show up in no log, error, trace or metric',
  'K-10': 'error bodies are generic: no hash, SQL, stack, path, upstream host',
  'K-12': 'each kind of credential in each header: as the table says, with the same rights',
  'K-13': 'hostile strings as credentials: 401 within 50 ms, no database error',
  'K-14': 'null, empty and odd values as credentials never match',
  'K-15': 'empty, default and short secrets: no start, or strong ones made',
  'K-16': 'get-secrets gives keys only and only of its user',
  'K-17': 'a key in an address is not logged',

  'N-01': 'no field of a request chooses the address a provider key goes to',
  'N-02': '48 spellings of inner addresses: never reached, one uniform message',
  'N-03': 'outbound tests go through the public endpoint',
  'N-04': 'redirects are refused at the hop that leads inside, and credentials stay behind',
  'N-05': 'the address that was checked is the address that is dialled, under rebinding too',
  'N-06': 'one parser of addresses for check and dial',
  'N-08': 'fetched answers: size, time and number are capped',
  'N-09': 'own and metadata addresses are refused even under a wildcard',
  'N-11': 'the same outbound results on every runtime that is offered',
  'N-12': 'without the outbound guard the tests fail',

  'P-01': 'no user adds an MCP server that is a process',
  'P-02': 'testing a connection asks the same policy as saving it',
  'P-03': 'a configured process server starts without shell, secrets or leftovers',
  'P-04': 'a hostile MCP server is capped, its names kept apart, its changes approved again',
  'P-05': 'no token or key of ours reaches an MCP server or plugin',
  'P-07': 'local endpoints refuse a wrong Host or Origin',
  'P-08': 'a model that obeys every injected instruction can do only what the user may',
  'P-09': 'nothing leaks through images, links, arguments or error texts',
  'P-10': 'secrets are never placed in prompts',
  'P-11': 'a run uses the stored definition, not fields of the request',
  'P-12': 'plugin code cannot leave its sandbox',
  'P-13': 'plugin code that exhausts anything is killed and others do not notice',
  'P-14': 'templates substitute literally, once',
  'P-15': 'no endpoint sets environment or paths',
  'P-16': 'agent variables are checked against their declaration and inert',

  'U-01': 'the type of a file is decided by its bytes',
  'U-02': 'archive bombs are stopped while they are unpacked',
  'U-03': 'PDF bombs die in a child with limits',
  'U-04': 'image bombs are refused before they are decoded',
  'U-05': 'no XML entity is expanded, nothing is fetched',
  'U-06': 'no file name writes outside the folder',
  'U-07': 'no name that a tool returns does either',
  'U-08': 'files are served as attachments, never inline',
  'U-09': 'aborted uploads leave nothing behind, and a quota bounds the rest',
  'U-10': '50 conversions at once: bounded workers, bounded queue, 503 beyond',
  'U-11': 'a converter that crashes, hangs or leaks hurts its own request only',

  'W-01': '200 XSS payloads through everything shown: none runs',
  'W-02': 'a strict content security policy on every route',
  'W-03': 'model output makes the browser fetch nothing',
  'W-04': 'the console acts only on its own events, and unknown ones of an upstream are dropped',
  'W-05': 'no state changes from another origin or by GET',
  'W-06': 'cookies are host-bound, secure, http-only and rotated; no token in storage',
  'W-07': 'cross-origin access is an exact allow-list',
  'W-08': 'security headers on every answer, no server names',
  'W-12': 'all console assets come from the same origin',

  'C-01': 'the lockfile has an integrity for every entry and one allowed registry',
  'C-02': 'at most two packages with install scripts, and the server starts without any',
  'C-07': 'no secret in repository or package, and the list of packed files is as expected',
  'C-10': 'a fresh machine without a compiler: installed, started and answering within 60 s',

  'X-01': '10,000 seeded simulations of the books and the quota, each failing seed replays',
  'X-05': 'hand-made mutants of the guards are all killed',
}).map(([id, says]) => ({ id, says }));

/** Not proven yet, by the part that will. One line goes with each proof, and the count with it; neither ever grows. */
export const unprovenCount = 89;

export const unproven: Readonly<Record<Part, readonly string[]>> = {
  agents: ['O-13', 'P-01', 'P-02', 'P-03', 'P-04', 'P-05', 'P-07', 'P-08', 'P-09', 'P-10', 'P-11', 'P-12', 'P-13', 'P-14', 'P-15', 'P-16'],
  books: [],
  chat: [],
  console: ['W-01', 'W-02', 'W-03', 'W-04', 'W-05', 'W-06', 'W-07', 'W-08', 'W-12'],
  embeddings: [],
  files: ['O-08', 'I-10', 'I-11', 'U-01', 'U-02', 'U-03', 'U-04', 'U-05', 'U-06', 'U-07', 'U-08', 'U-09', 'U-10', 'U-11'],
  gencompat: ['R-07'],
  keys: ['K-01', 'K-02', 'K-03', 'K-04', 'K-05', 'K-06', 'K-08', 'K-09', 'K-10', 'K-12', 'K-14', 'K-15', 'K-16', 'K-17'],
  load: ['L-01', 'L-02', 'L-04', 'L-08', 'O-01', 'O-03', 'O-04', 'O-05', 'O-06', 'O-09'],
  native: ['I-16', 'I-22', 'T-01', 'T-02', 'T-03', 'T-04', 'T-05', 'T-06', 'T-07', 'T-08', 'T-10', 'T-11', 'T-12', 'T-14'],
  operations: ['G-01', 'G-02', 'G-03', 'G-08'],
  outbound: ['N-01', 'N-11'],
  store: ['B-01', 'B-02', 'B-03', 'B-04'],
  'supply-chain': ['C-10'],
};
