import '../../../test/planted.ts';
import '#http/planted';
