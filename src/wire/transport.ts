/** Where a peer listens, and the byte stream to it. */

/** An address that a peer has bound. `ipc` is a unix socket; a path that starts with `\0` is abstract. */
export type Endpoint =
  | { readonly transport: "ipc"; readonly path: string }
  | { readonly transport: "tcp"; readonly host: string; readonly port: number };
