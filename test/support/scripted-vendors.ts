import { afterAll, afterEach } from 'vitest';
import { startVendors, type Vendors } from './fakes/vendors/index.ts';
import { startTestServer, type TestServer } from './server.ts';

/**
 * Starts the scripted vendors at their own addresses, and a server in front of them, for all tests of a file. What they were asked is forgotten after each test.
 *
 * @param options of the vendors: see `startVendors`
 */
export async function scriptedVendors(options: Parameters<typeof startVendors>[0] = {}): Promise<{ readonly vendors: Vendors; readonly server: TestServer }> {
  const vendors = await startVendors(options);
  const server = await startTestServer({ yaml: vendors.yaml });
  afterAll(async () => {
    await server.close();
    await vendors.close();
  });
  afterEach(() => vendors.reset());
  return { vendors, server };
}
