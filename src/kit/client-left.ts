/** The reason of a signal when the client is gone: nobody is left to be answered. */
export class ClientLeft extends Error {
  constructor() {
    super('The client left.');
    this.name = 'ClientLeft';
  }
}
