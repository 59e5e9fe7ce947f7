/** The reason of a signal when the client is gone: nobody is left to be answered. */
export class ClientLeft extends Error {
  constructor() {
    super('The client left.');
    this.name = 'ClientLeft';
  }
}

/** Whoever wanted the answer does not want it any more, and said so. */
export class Cancelled extends ClientLeft {
  override readonly name: string = 'Cancelled';
}
