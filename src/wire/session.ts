/** One ZMTP connection as a pure state machine. */

/** Who is at the other end, from its READY. */
export interface Peer {
  /** `PUB`, `XPUB`, `ROUTER`…; undefined if it did not say. */
  readonly socketType: string | undefined;
  /** All properties of its READY; names are lower-cased, values are as sent. */
  readonly properties: ReadonlyMap<string, Uint8Array>;
}
