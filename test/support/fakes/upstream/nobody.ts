import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';

export interface Nobody {
  readonly url: string;
  close(): void;
}

/** An address that refuses connections, and goes on refusing: its port is taken by the near end of a connection, so nobody can come to listen there. */
export async function nobody(): Promise<Nobody> {
  const far = createServer();
  far.listen(0, '127.0.0.1');
  await once(far, 'listening');
  const near = connect((far.address() as AddressInfo).port, '127.0.0.1');
  const [[other]] = await Promise.all([once(far, 'connection'), once(near, 'connect')]);
  return {
    url: `http://127.0.0.1:${near.localPort}`,
    close() {
      near.destroy();
      other.destroy();
      far.close();
    },
  };
}
