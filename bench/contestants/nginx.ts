/** nginx as a plain proxy: one worker passes bytes on as they come, over kept-alive connections; no buffering, no log. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cores, freePort, installed, start } from '../processes.ts';
import { answering, chatPath, type Entrant } from './contestant.ts';

export const nginx: Entrant = {
  missing: () => (installed('nginx') ? undefined : 'nginx is not installed (apt-get install nginx).'),
  async open({ folder, upstreamPort }) {
    const port = await freePort();
    const file = join(folder, 'nginx.conf');
    writeFileSync(file, settings({ folder, port, upstreamPort }));
    const running = start({
      program: 'nginx',
      words: ['-c', file, '-p', folder, '-e', join(folder, 'error.log')],
      core: cores.gateway,
      folder,
      log: join(folder, 'log'),
    });
    return answering('nginx', running, { port, path: chatPath, headers: [], folder });
  },
};

function settings({ folder, port, upstreamPort }: { folder: string; port: number; upstreamPort: number }): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${folder}/${what};`).join(' ');
  return `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off; pid ${folder}/nginx.pid; worker_processes 1; worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http {
  access_log off; ${temporary}
  keepalive_requests 1000000000; client_body_buffer_size 64k;
  upstream provider { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 300s; }
  }
}
`;
}
