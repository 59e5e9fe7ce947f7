/** Abort reason: the client has disconnected, so that no answer can be delivered. */
export class ClientLeft extends Error {
  constructor() {
    super('The client left.');
    this.name = 'ClientLeft';
  }
}

/** Abort reason: the requester has cancelled the answer explicitly. */
export class Cancelled extends ClientLeft {
  override readonly name: string = 'Cancelled';
}
