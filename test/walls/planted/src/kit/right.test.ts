import '../../test/planted.ts';
import './planted.ts';
