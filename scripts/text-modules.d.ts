/** Shell scripts that the program embeds as text. */
declare module "*.sh" {
  const text: string;
  export default text;
}
