import { get } from '#kit/net/http';
import { trimEnd } from '#kit/text/trim-end';

const local = 'http://127.0.0.1:11434';

/** Whether an Ollama server answers at the URL within the given time (milliseconds). */
export type Probe = (url: string, milliseconds: number) => Promise<boolean>;

/** The URL of an Ollama on this machine. Takes up to 300 ms, so it is called at startup only. */
export async function runningOllama(probe: Probe = answersAsOllama): Promise<string | undefined> {
  return (await probe(`${local}/api/version`, 300)) ? local : undefined;
}

/** OLLAMA_HOST as an address, by Ollama's own rules: `0.0.0.0`, `:11434`, `box:1234`, `https://box`. A text that is not an address is returned unchanged. */
export function ollamaAddress(text: string): string {
  const hasScheme = /^https?:\/\//i.test(text);
  const url = URL.parse(hasScheme ? text : `http://${text.replace(/^:/, '127.0.0.1:')}`);
  if (!url) return text;
  // Wildcard addresses are for listening; not every system can connect to them.
  const host = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' }[url.hostname] ?? url.hostname;
  const port = url.port || (hasScheme || /:80\/?$/.test(text) ? '' : '11434');
  const account = url.username || url.password ? `${url.username}:${url.password}@` : '';
  return `${url.protocol}//${account}${host}${port && `:${port}`}${trimEnd(url.pathname, '/')}${url.search}${url.hash}`;
}

/** Asks directly, never through a proxy. */
export const answersAsOllama: Probe = (url, milliseconds) =>
  new Promise((resolve) => {
    const signal = AbortSignal.timeout(milliseconds);
    const request = get(url, { agent: false, signal }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        body += text;
        if (body.length > 1000) response.destroy();
      });
      response.on('error', () => resolve(false));
      response.on('close', () => resolve(response.statusCode === 200 && /^\{"version":"[^"]*"\}\s*$/.test(body)));
    });
    request.on('error', () => resolve(false));
  });
