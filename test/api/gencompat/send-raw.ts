import { request } from 'node:http';

/** POSTs to a path exactly as it is written: clients of the platform would tidy it up. @returns the status, 400 where it cannot even be said */
export function raw(url: string, path: string, key: string, body: string): Promise<number> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const said = Buffer.from(path, 'utf8').toString('latin1');
    let asked;
    try {
      asked = request({
        hostname,
        port,
        method: 'POST',
        path: said.replaceAll(' ', '%20'),
        headers: { 'x-access-tokens': key, 'content-type': 'application/json' },
      });
    } catch {
      return resolve(400);
    }
    asked.on('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on('error', reject);
    asked.end(body);
  });
}
